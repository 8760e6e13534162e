import { setTimeout as sleep } from 'node:timers/promises';

/** The answer was cut, or none came. Another attempt from the last proof may succeed. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  /** How long the server asks the client to wait. Milliseconds. */
  readonly retryAfterMs: number;
  /** The status of the server's answer, if it was that. */
  readonly status: number | undefined;

  constructor(
    message: string,
    options: ErrorOptions & { readonly retryAfterMs?: number; readonly status?: number } = {},
  ) {
    super(message, options);
    this.retryAfterMs = options.retryAfterMs ?? 0;
    this.status = options.status;
  }
}

/** What came is not what the server says that it sent. Another attempt may bring it whole. */
export class Mismatched extends Interrupted {}

/**
 * Another attempt would fail in the same way: the server refuses, or the files on disk belong to another
 * pull.
 */
export class Refused extends Error {
  override readonly name = 'Refused';
  /** The status of the server's answer, if it was that. */
  readonly status: number | undefined;

  constructor(message: string, options: ErrorOptions & { readonly status?: number } = {}) {
    super(message, options);
    this.status = options.status;
  }
}

/**
 * Statuses after which the same request may succeed: the server is unavailable, busy, or failed on this one
 * request.
 */
const RETRYABLE: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504, 507]);

/** The failure for an answer with this status, or for a problem document with it. */
export function failureOf(status: number, message: string, retryAfterMs = 0): Interrupted | Refused {
  return RETRYABLE.has(status)
    ? new Interrupted(message, { retryAfterMs, status })
    : new Refused(message, { status });
}

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

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 30_000;

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
 * The attempts at an operation of a server, one after the other, and the pauses between them. Each pause is
 * twice as long as the one before. Half of it is random, so that clients do not return in step. All time
 * spent waiting counts until `reset`, whatever arrives meanwhile. The time that a slow reader spends on
 * received data does not count.
 */
export class Backoff {
  readonly #options: BackoffOptions;
  /** The time limit of the current attempt. */
  #late = new AbortController();
  #failures = 0;
  #waitedMs = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Called when rows were proved. The next failure counts as the first one. */
  reset(): void {
    this.#failures = 0;
    this.#waitedMs = 0;
  }

  /** Begins an attempt. Its signal is aborted when it takes too long, or when the pull is aborted. */
  begin(): AbortSignal {
    this.#late = new AbortController();
    return AbortSignal.any([this.#options.signal, this.#late.signal]);
  }

  /**
   * Waits for an operation of the current attempt. The time counts. Rejects with Interrupted when it takes
   * too long. `work` must observe the signal of the attempt.
   */
  async wait<T>(work: () => Promise<T>): Promise<T> {
    const { clock, retryForMs, idleMs } = this.#options;
    const late = this.#late;
    const mostMs = Math.max(retryForMs, idleMs);
    const expire = () => late.abort(new Interrupted(`no row was proved for ${Math.ceil(mostMs / 1000)} s`));
    const timer = setTimeout(expire, Math.max(0, mostMs - this.#waitedMs));
    const began = clock.now();
    try {
      const result = await work();
      late.signal.throwIfAborted();
      return result;
    } catch (error) {
      late.signal.throwIfAborted();
      throw error;
    } finally {
      clearTimeout(timer);
      this.#waitedMs += clock.now() - began;
    }
  }

  /**
   * Resolves when it is time for the next attempt. Rejects with the failure when another attempt is useless,
   * or when `retryForMs` is used up.
   */
  async after(failure: unknown): Promise<void> {
    const { clock, retryForMs, signal, onInterrupted } = this.#options;
    signal.throwIfAborted();
    if (!(failure instanceof Interrupted)) throw failure;
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures);
    this.#failures++;
    const ms = Math.max(failure.retryAfterMs, Math.round(pause * (0.5 + clock.random() / 2)));
    if (this.#waitedMs + ms > retryForMs) throw failure;
    onInterrupted(failure, ms);
    await clock.sleep(ms, signal);
    this.#waitedMs += ms;
  }

  /** Repeats `work` until it succeeds. Rejects as `after` does. */
  async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const signal = this.begin();
        return await this.wait(() => work(signal));
      } catch (error) {
        await this.after(error);
      }
    }
  }
}
