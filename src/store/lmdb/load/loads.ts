import { setTimeout as delay } from 'node:timers/promises';
import { notReady } from '../../../errors.ts';
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
  #recovering: Promise<boolean> | null = null;

  constructor(options: LoadsOptions) {
    this.#options = options;
  }

  /** Whether somebody is loading the set. Its rows are not whole then, and nobody else may write to it. */
  get isUnderWay(): boolean {
    return this.#options.mark.isSet;
  }

  /**
   * Rejects reads while somebody is loading the set: they would find none of its rows, or a part of them. When the loading
   * process has ended, what it left is removed meanwhile.
   */
  assertWhole(): void {
    const { mark } = this.#options;
    if (!mark.isSet) return;
    if (!mark.isLive)
      this.#recovering ??= this.recover()
        .catch(() => false) // the disk may be full: the next read tries again
        .finally(() => (this.#recovering = null));
    throw notReady();
  }

  /** See RowStore.load. */
  async load(onConflict: OnConflict, refuse: Refuse, replaces = false): Promise<Load | null> {
    await this.recover();
    const { target, mark, commits } = this.#options;
    const begin = (): number | null => {
      const rows = target.count();
      if (mark.isSet || (rows > 0 && !replaces)) return null;
      mark.set();
      target.begin();
      return rows;
    };
    let removed = await commits.run(begin);
    while (removed === null && replaces) {
      await this.untilFree();
      removed = await commits.run(begin);
    }
    if (removed === null) return null;
    // What is there is what this load replaces. A load that is killed here leaves an empty set, too.
    if (removed > 0)
      await this.#clear(() => {
        mark.renew();
        return true;
      });
    return new LmdbLoad({ ...this.#options, onConflict, refuse, removed });
  }

  /** Undoes a load whose process has ended. Resolves with whether the set is free now: nobody is loading it. */
  async recover(): Promise<boolean> {
    const { begin, target, mark, commits } = this.#options;
    begin();
    if (!mark.isSet) return true;
    if (mark.isLive) return false;
    const isMine = (): boolean => mark.isSet && !mark.isLive;
    await this.#clear(isMine);
    await commits.run(() => {
      if (!isMine()) return;
      target.complete(0);
      mark.remove();
    });
    begin();
    return !mark.isSet;
  }

  /** Takes out all rows. `mayGoOn` is called first in each transaction. */
  async #clear(mayGoOn: () => boolean): Promise<void> {
    const { target, commits } = this.#options;
    while (await commits.run(() => mayGoOn() && target.clear()));
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
