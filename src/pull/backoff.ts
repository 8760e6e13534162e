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
  /** Gives up after so long without anything new. Milliseconds. */
  readonly retryForMs: number;
  readonly signal: AbortSignal;
  /** Told of each failure, and how long is waited before the next attempt. */
  readonly onInterrupted: (failure: Interrupted, waitMs: number) => void;
}

/** Waits between attempts: twice as long each time, by half at random so that clients do not come back in step. */
export class Backoff {
  readonly #options: BackoffOptions;
  #attempts = 0;
  #since = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Something came: the next failure is a first one. */
  reset(): void {
    this.#attempts = 0;
  }

  /** Resolves when it is time for the next attempt; rejects with the failure when another one is of no use. */
  async after(failure: unknown): Promise<void> {
    const { clock, retryForMs, signal, onInterrupted } = this.#options;
    signal.throwIfAborted();
    if (!(failure instanceof Interrupted)) throw failure;
    const now = clock.now();
    if (this.#attempts === 0) this.#since = now;
    const wait = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.#attempts);
    this.#attempts++;
    const ms = Math.max(failure.retryAfterMs, Math.round(wait * (0.5 + clock.random() / 2)));
    if (now + ms - this.#since > retryForMs) throw failure;
    onInterrupted(failure, ms);
    await clock.sleep(ms, signal);
  }
}
