import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../errors.ts';
import { bounded } from './deadline.ts';
import type { ChainReader } from './store.ts';

/** An election takes 10 s by default, a container that is started again less; nobody keeps a client waiting longer. */
export const RETRY_MS = 30_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

export interface RetryOptions {
  /** How long one read is asked for again in all. Milliseconds. */
  readonly retryMs: number;
  /** Called before each time that a read is asked for again. */
  readonly onRetry?: () => void;
  /** A clock in milliseconds. */
  readonly now?: () => number;
  /** Resolves after so many milliseconds; rejects with the signal's reason when that is aborted before. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/**
 * A reader for those who have begun and would rather wait than break off: what fails with `store-unavailable`, or hangs, is
 * asked for again, from the same bookmark and so without loss or repetition, after pauses of 50 ms to 1 s. After
 * `retryMs` in all it rejects as the reader does.
 */
export function retryingReader(
  rows: ChainReader,
  { retryMs, onRetry, now = () => performance.now(), pause = sleepFor }: RetryOptions,
): ChainReader {
  const last = async <T>(signal: AbortSignal, ask: (limited: AbortSignal) => Promise<T>): Promise<T> => {
    const end = now() + retryMs;
    for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
      try {
        return await bounded(end - now(), signal, ask);
      } catch (error) {
        if (!isUnavailable(error) || now() + wait >= end) throw error;
      }
      await pause(wait, signal);
      onRetry?.();
    }
  };
  return {
    read: (plan, from, size, signal) => last(signal, (limited) => rows.read(plan, from, size, limited)),
    confirm: (batch, plan, signal) => last(signal, (limited) => rows.confirm(batch, plan, limited)),
  };
}

async function sleepFor(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted(); // with its own reason: the timer's error only names it as a cause
    throw error;
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'store-unavailable';
}
