import { setTimeout as sleep } from 'node:timers/promises';
import { Interrupted } from './failure.ts';

/** Time and randomness, passed in so that tests never wait. */
export interface Clock {
  /** Milliseconds. */
  now(): number;
  /** Resolves after `ms` milliseconds. Rejects when the signal is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<unknown>;
  /** A random number from 0 up to but not including 1. */
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
  /** A pull gives up after waiting this long without another proved row. Milliseconds. */
  readonly retryForMs: number;
  /** The minimum time for an attempt, even when `retryForMs` is less. Milliseconds. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
  /** Called with each failure and the pause before the next attempt. */
  readonly onInterrupted: (failure: Interrupted, waitMs: number) => void;
}

/**
 * How long a pull waits for a server. The pause between attempts doubles each time. Half of it is random, so
 * that clients do not return in step. All time spent waiting counts until `reset`, whatever arrives
 * meanwhile. The time that a slow reader spends on received data does not count.
 */
export class Backoff {
  readonly #options: BackoffOptions;
  #attempts = 0;
  #waitedMs = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Called when rows were proved. The next failure counts as the first one. */
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

  /**
   * Resolves when it is time for the next attempt. Rejects with the failure when another attempt is useless,
   * or when `retryForMs` is used up.
   */
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
  /** The remaining part of `mostMs`, in milliseconds. */
  readonly left: () => number;
  readonly spend: (ms: number) => void;
}

/** One attempt at an operation of a server. */
export class Attempt {
  readonly #options: AttemptOptions;
  readonly #late = new AbortController();
  /** Aborted when the attempt takes too long, or when the pull is aborted. */
  readonly signal: AbortSignal;

  constructor(options: AttemptOptions) {
    this.#options = options;
    this.signal = AbortSignal.any([options.signal, this.#late.signal]);
  }

  /**
   * Waits for an operation of the server. The time counts. Rejects with Interrupted when it takes too long.
   * `work` must observe `signal`.
   */
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
