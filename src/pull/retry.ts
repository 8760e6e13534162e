import { clipped, printable } from '../terminal/text.ts';

/** Its message may quote the server, and may be written to a terminal. */
class Failure extends Error {
  /** How long the server asks the client to wait. Milliseconds. */
  readonly retryAfterMs: number;
  /** The status of the server's answer, if it was that. */
  readonly status: number | undefined;

  constructor(message: string, options: ErrorOptions & { retryAfterMs?: number; status?: number } = {}) {
    super(printable(message), options);
    this.retryAfterMs = options.retryAfterMs ?? 0;
    this.status = options.status;
  }
}

/** The answer was cut, or none came. Another attempt from the last proof may succeed. */
export class Interruption extends Failure {
  override readonly name = 'Interrupted'; // clients know it by this name: docs/clients.md
}

/** What came is not what the server says that it sent. Another attempt may bring it whole. */
export class Mismatch extends Interruption {}

/** Another attempt would fail in the same way: the server refuses, or the files on disk belong to another pull. */
export class Refusal extends Failure {
  override readonly name = 'Refused'; // so, too
}

/** Statuses after which the same request may succeed. */
const RETRYABLE: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504, 507]);

/** The failure for an answer with this status, or for a problem document with it. */
export function failureOf(status: number, message: string, retryAfterMs = 0): Interruption | Refusal {
  return new (RETRYABLE.has(status) ? Interruption : Refusal)(message, { retryAfterMs, status });
}

/** The failure for an answer with another status than 200. `header`: its headers by name. `text`: its content. */
export function failureOfAnswer(
  status: number,
  header: (name: string) => string | null | undefined,
  text: string,
): Interruption | Refusal {
  const isProblem = header('content-type')?.startsWith('application/problem+json') ?? false;
  const detail = isProblem ? detailOf(text.trim()) : '';
  return failureOf(
    status,
    `the server answered ${status}${detail && `: ${clipped(detail)}`}`,
    retryAfterMs(header('retry-after')),
  );
}

/** How long a `Retry-After` asks the client to wait. Milliseconds. 0: not at all, or until a date. */
export function retryAfterMs(header: string | null | undefined): number {
  const seconds = Number(header ?? 0);
  return Number.isFinite(seconds) ? seconds * 1000 : 0;
}

function detailOf(problem: string): string {
  const { detail } = Object(jsonIn(problem)) as { detail?: unknown };
  return typeof detail === 'string' ? detail : '';
}

/** The value of a text of JSON, which may be cut. undefined: the text is no JSON. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
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
  sleep,
  random: () => Math.random(),
};

/** Browsers have no timers that are promises. */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const giveUp = () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', giveUp);
      resolve();
    }, ms);
    signal.addEventListener('abort', giveUp, { once: true });
  });
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 30_000;

export interface BackoffOptions {
  readonly clock: Clock;
  /** A pull gives up after waiting this long without another proved row. Milliseconds. */
  readonly retryForMs: number;
  /** An attempt is given up after waiting this long for more, even when `retryForMs` is less. Milliseconds. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
  /** The pause between attempts, where it does not grow. The server may ask for a longer one. Milliseconds. */
  readonly steadyPauseMs?: number;
  /** Called with each failure and the pause before the next attempt. */
  readonly onInterrupted: (failure: Interruption, waitMs: number) => void;
}

/**
 * The attempts at an operation of a server, one after the other, and the pauses between them, each twice as long as the one
 * before and half of it random. All time counts until `reset`, whatever arrives meanwhile, but not the time that a slow
 * reader spends on rows.
 */
export class Backoff {
  readonly #options: BackoffOptions;
  readonly #mostMs: number;
  #failures = 0;
  #spentMs = 0;
  /** Up to here, time is counted. */
  #countedTo: number;

  constructor(options: BackoffOptions) {
    this.#options = options;
    this.#mostMs = Math.max(options.retryForMs, options.idleMs);
    this.#countedTo = options.clock.now();
  }

  /** Called when rows were proved. The next failure counts as the first one. */
  reset(): void {
    this.#failures = 0;
    this.#spentMs = 0;
    this.#skip();
  }

  /** Called when a reader gets rows. Returns what is called when it asks for more: its time does not count. */
  leave(): () => void {
    this.#count();
    return () => this.#skip();
  }

  /** One attempt at a content, whose pieces are passed on as they come. */
  async *content<T>(
    open: (signal: AbortSignal) => Promise<AsyncIterable<T>>,
  ): AsyncGenerator<T, void, undefined> {
    const { late, begun } = this.#begin(open);
    const pieces = (await begun)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await this.#wait(late, () => pieces.next());
        if (next.done) return;
        yield next.value;
      }
    } finally {
      await pieces.return?.();
    }
  }

  /** Resolves when it is time for the next attempt. Rejects with the failure when that is useless or too late. */
  async after(failure: unknown): Promise<void> {
    const { signal, clock, retryForMs, onInterrupted, steadyPauseMs } = this.#options;
    signal.throwIfAborted();
    if (!(failure instanceof Interruption)) throw failure;
    const ms = Math.max(failure.retryAfterMs, steadyPauseMs ?? this.#growingPauseMs());
    this.#count();
    if (this.#spentMs + ms > retryForMs) throw failure;
    onInterrupted(failure, ms);
    await clock.sleep(ms, signal);
    this.#spentMs += ms;
    this.#skip();
  }

  /** Repeats `work` until it succeeds. Rejects as `after` does. */
  async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await this.#begin(work).begun;
      } catch (error) {
        await this.after(error);
      }
    }
  }

  #growingPauseMs(): number {
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures);
    this.#failures++;
    return Math.round(pause * (0.5 + this.#options.clock.random() / 2));
  }

  #count(): void {
    const now = this.#options.clock.now();
    this.#spentMs += now - this.#countedTo;
    this.#countedTo = now;
  }

  /** Leaves out the time until now. */
  #skip(): void {
    this.#countedTo = this.#options.clock.now();
  }

  /** Begins an attempt, which must observe the signal: it is aborted when a part takes too long, or the pull is aborted. */
  #begin<T>(attempt: (signal: AbortSignal) => Promise<T>) {
    const late = new AbortController();
    const signal = AbortSignal.any([this.#options.signal, late.signal]);
    return { late, begun: this.#wait(late, () => attempt(signal)) };
  }

  /** Waits for a part of an attempt. The time counts. Aborts `late`, and rejects with Interruption, when it takes too long. */
  async #wait<T>(late: AbortController, work: () => Promise<T>): Promise<T> {
    this.#count();
    const { idleMs } = this.#options;
    const leftMs = this.#mostMs - this.#spentMs;
    const reason =
      idleMs < leftMs
        ? `the server sent nothing for ${idleMs / 1000} s`
        : `no row was proved for ${Math.ceil(this.#mostMs / 1000)} s`;
    const timer = setTimeout(
      () => late.abort(new Interruption(reason)),
      Math.max(0, Math.min(idleMs, leftMs)),
    );
    if (leftMs <= 0) late.abort(new Interruption(reason)); // the timer waits while data comes as fast as it is read
    try {
      const result = await work();
      late.signal.throwIfAborted();
      return result;
    } catch (error) {
      late.signal.throwIfAborted();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
