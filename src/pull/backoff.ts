import { setTimeout as sleep } from 'node:timers/promises';
import { Interrupted } from './failure.ts';

/** Time and chance, passed in: no test waits. */
export interface Clock {
  /** Milliseconds. */
  now(): number;
  /** Rejects when the signal is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<unknown>;
  /** From 0 to below 1. */
  random(): number;
}

export const REAL_CLOCK: Clock = {
  now: () => performance.now(),
  sleep: (ms, signal) => sleep(ms, undefined, { signal }),
  random: () => Math.random(),
};

const FIRST_MS = 200;
const LONGEST_MS = 30_000;

export interface BackoffOptions {
  readonly clock: Clock;
  /** Gives up after so long without another proved row. Milliseconds. */
  readonly retryForMs: number;
  /** An attempt is given so long, also when `retryForMs` is less. Milliseconds. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
  /** Told of each failure, and how long is waited before the next attempt. */
  readonly onInterrupted: (failure: Interrupted, waitMs: number) => void;
}

/**
 * How long a server is waited for. Between attempts it waits twice as long each time, by half at random so that clients do not
 * come back in step. All time spent on waiting counts until `reset`, whatever comes meanwhile; the time of a reader that
 * takes long over what came does not.
 */
export class Backoff {
  readonly #options: BackoffOptions;
  #attempts = 0;
  #waitedMs = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Rows were proved: the next failure is a first one. */
  reset(): void {
    this.#attempts = 0;
    this.#waitedMs = 0;
  }

  /** Begins an attempt, which ends by itself when it takes too long. */
  attempt(): Attempt {
    const { clock, retryForMs, idleMs, signal } = this.#options;
    const mostMs = Math.max(retryForMs, idleMs);
    const spend = (ms: number) => (this.#waitedMs += ms);
    return new Attempt({ clock, signal, mostMs, left: () => Math.max(0, mostMs - this.#waitedMs), spend });
  }

  /** Resolves when it is time for the next attempt; rejects with the failure when another one is of no use. */
  async after(failure: unknown): Promise<void> {
    const { clock, retryForMs, signal, onInterrupted } = this.#options;
    signal.throwIfAborted();
    if (!(failure instanceof Interrupted)) throw failure;
    const wait = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.#attempts);
    this.#attempts++;
    const ms = Math.max(failure.retryAfterMs, Math.round(wait * (0.5 + clock.random() / 2)));
    if (this.#waitedMs + ms > retryForMs) throw failure;
    onInterrupted(failure, ms);
    await clock.sleep(ms, signal);
    this.#waitedMs += ms;
  }
}

interface AttemptOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly mostMs: number;
  /** How much of that is left. */
  readonly left: () => number;
  readonly spend: (ms: number) => void;
}

/** One attempt at something that a server does. */
export class Attempt {
  readonly #options: AttemptOptions;
  readonly #late = new AbortController();
  /** Aborted when the attempt takes too long, or as the pull is. */
  readonly signal: AbortSignal;

  constructor(options: AttemptOptions) {
    this.#options = options;
    this.signal = AbortSignal.any([options.signal, this.#late.signal]);
  }

  /** Waits for what the server does; the time counts. Rejects with Interrupted when it takes too long; `work` must heed `signal`. */
  async wait<T>(work: () => Promise<T>): Promise<T> {
    const { clock, mostMs, left, spend } = this.#options;
    const late = this.#late;
    const reason = new Interrupted(`no row was proved for ${Math.ceil(mostMs / 1000)} s`);
    const timer = setTimeout(() => late.abort(reason), left());
    const began = clock.now();
    try {
      const result = await work();
      late.signal.throwIfAborted();
      return result;
    } catch (error) {
      throw late.signal.aborted ? reason : error;
    } finally {
      clearTimeout(timer);
      spend(clock.now() - began);
    }
  }
}
