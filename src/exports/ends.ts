import { setTimeout as sleep } from 'node:timers/promises';
import { getOrMake } from '../base/get-or-make.ts';

/** Milliseconds between looks at the records: another process that ends an export tells nobody. */
const LOOK_MS = 1_000;
/** How many times longer than a look the pause behind it is at least, however many exports are waited for. */
const PAUSES_A_LOOK = 4;

/**
 * Those who wait for the ends of exports. Nobody holds a connection to the store: an end in this process is told, and for
 * others all share one look a second at each export, one export after the other.
 */
export class Ends {
  readonly #isOver: (id: string, signal: AbortSignal) => Promise<boolean>;
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #closed = new AbortController();
  #isLooking = false;

  /** `isOver`: whether an export has ended or is gone, as the store says. */
  constructor(isOver: (id: string, signal: AbortSignal) => Promise<boolean>) {
    this.#isOver = isOver;
  }

  /** Resolves when the export is over, after `ms` milliseconds, when the signal is aborted, or at `close`. */
  async wait(id: string, ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#closed.signal.aborted) return;
    const { promise, resolve } = openPromise();
    const own = getOrMake(this.#waiting, id, () => new Set());
    const timer = setTimeout(resolve, ms);
    own.add(resolve);
    signal.addEventListener('abort', resolve);
    if (!this.#isLooking) void this.#look();
    await promise;
    signal.removeEventListener('abort', resolve);
    clearTimeout(timer);
    own.delete(resolve);
    if (own.size === 0 && this.#waiting.get(id) === own) this.#waiting.delete(id);
  }

  /** Wakes those who wait for an export. Who finds it as it was asks again. */
  tell(id: string): void {
    for (const wake of this.#waiting.get(id) ?? []) wake();
  }

  /** Wakes all, now and from now on. */
  close(): void {
    this.#closed.abort();
    for (const id of this.#waiting.keys()) this.tell(id);
  }

  async #look(): Promise<void> {
    const { signal } = this.#closed;
    this.#isLooking = true;
    for (let tookMs = 0; this.#waiting.size > 0 && !signal.aborted;) {
      await sleep(Math.max(LOOK_MS, PAUSES_A_LOOK * tookMs), undefined, { signal }).catch(() => undefined);
      const began = performance.now();
      for (const id of this.#waiting.keys()) {
        // Who waits reads the record itself, and meets the error of a store that is away.
        if (await this.#isOver(id, signal).catch(() => true)) this.tell(id);
      }
      tookMs = performance.now() - began;
    }
    this.#isLooking = false;
  }
}

function openPromise(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
