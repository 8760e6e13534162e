import { setTimeout as sleep } from 'node:timers/promises';

/** How long an export rests for a request, and the longest rest. Milliseconds. A page takes about one where two cores are all. */
const REQUEST_MS = 1;
const LONGEST_MS = 20;
/** How many times as long as its work an export may rest. */
const SHARE = 2;
/** The requests since the rest before that get none: those of clients who look at their exports. */
const FREE = 2;

interface RestOptions {
  /** How many requests this process has begun so far. Those of other processes are not known. */
  readonly begun: () => number;
  /** A clock in milliseconds. */
  readonly now?: () => number;
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/**
 * The rests of one export between its pieces, which leave processor and store to requests. Text that is not compressed would
 * else come as fast as the two can, and pages would wait for both. Without requests an export never rests.
 */
export class Rests {
  readonly #begun: () => number;
  readonly #now: () => number;
  readonly #pause: (ms: number, signal: AbortSignal) => Promise<unknown>;
  #seen: number;
  #since: number;

  constructor({
    begun,
    now = () => performance.now(),
    pause = (ms, signal) => sleep(ms, undefined, { signal }),
  }: RestOptions) {
    this.#begun = begun;
    this.#now = now;
    this.#pause = pause;
    this.#seen = begun();
    this.#since = now();
  }

  /** Rests for the requests since the rest before. Rejects when the signal is aborted meanwhile. */
  async take(signal: AbortSignal): Promise<void> {
    const requests = Math.max(0, this.#begun() - this.#seen - FREE);
    const worked = this.#now() - this.#since;
    const ms = Math.floor(Math.min(REQUEST_MS * requests, SHARE * worked, LONGEST_MS));
    if (ms > 0) await this.#pause(ms, signal);
    this.#seen = this.#begun();
    this.#since = this.#now();
  }
}
