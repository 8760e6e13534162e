import { setTimeout as delay } from 'node:timers/promises';
import type { Commits } from '../commits.ts';
import type { Load, OnConflict, Refuse } from '../../store.ts';
import { LmdbLoad, type LoadTarget } from './load.ts';
import type { LoadMark } from './mark.ts';

/** How often to look whether another process has finished its load, or ended. Milliseconds. */
const LOOK_MS = 200;
const WATCH_MS = 5_000;

export interface LoadsOptions {
  readonly target: LoadTarget;
  readonly mark: LoadMark;
  readonly commits: Pick<Commits, 'run'>;
  /** For temporary files. */
  readonly directory: string;
  /** Called before each look at the file. Throws when it cannot be read. */
  readonly begin: () => void;
}

/** The loads of a set, by this process and by others. */
export class Loads {
  readonly #options: LoadsOptions;

  constructor(options: LoadsOptions) {
    this.#options = options;
  }

  /** See ItemStore.load. */
  async load(onConflict: OnConflict, refuse: Refuse): Promise<Load | null> {
    await this.recover();
    const { target, mark, commits } = this.#options;
    const isBegun = await commits.run(() => {
      if (mark.isSet || !target.isEmpty()) return false;
      mark.set();
      target.begin();
      return true;
    });
    return isBegun ? new LmdbLoad({ ...this.#options, onConflict, refuse }) : null;
  }

  /** Undoes a load whose process has ended. Resolves with whether the set is free now: nobody is loading it. */
  async recover(): Promise<boolean> {
    const { begin, target, mark, commits } = this.#options;
    begin();
    if (!mark.isSet) return true;
    if (mark.isLive) return false;
    await commits.run(() => {
      if (!mark.isSet || mark.isLive) return;
      target.clear();
      mark.remove();
    });
    begin();
    return !mark.isSet;
  }

  /** Looks again and again until nobody is loading the set: the process that loads it may end. */
  watch(): void {
    const look = async (): Promise<void> => {
      try {
        if (!(await this.recover())) this.watch();
      } catch {
        if (this.#canRead()) this.watch(); // the disk may be full: reads and writes say so
      }
    };
    setTimeout(() => void look(), WATCH_MS).unref();
  }

  #canRead(): boolean {
    try {
      this.#options.begin();
      return true;
    } catch {
      return false; // closed or lost
    }
  }

  /** Resolves when nobody is loading the set. */
  async untilFree(): Promise<void> {
    while (!(await this.recover())) await delay(LOOK_MS);
  }
}
