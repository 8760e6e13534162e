import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../errors.ts';
import type { ReadBatch } from './batch.ts';
import type { RowReader } from './collection.ts';
import { withDeadline } from './deadline.ts';

/**
 * An election takes 10 s by default, and the restart of a container less. No client waits longer than
 * this.
 */
export const RETRY_MS = 30_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

export interface RetryOptions {
  /** How long one read is retried in total, in milliseconds. */
  readonly retryMs: number;
  /** Called before each retry. */
  readonly onRetry?: () => void;
  /** A clock in milliseconds. */
  readonly now?: () => number;
  /** Resolves after `ms` milliseconds. Rejects with the signal's reason when the signal is aborted earlier. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/** A reader for chains that have begun and would rather wait than break off. */
export interface RetryingReader extends RowReader {
  /**
   * Reads a chain's first batch. Does not retry: the client has no answer yet and learns at once that the store is
   * unavailable.
   */
  readonly begin: RowReader['read'];
}

/**
 * A read that fails with `store-unavailable`, or hangs, is retried from the same bookmark, so no row is lost or repeated,
 * and so is the proof of a batch. Pauses between retries grow from 50 ms to 1 s. After `retryMs` in total it rejects as the
 * wrapped reader does.
 */
export function retryingReader(rows: RowReader, options: RetryOptions): RetryingReader {
  const last = retrying(options);
  const lasting = (batch: ReadBatch): ReadBatch => ({
    ...batch,
    confirm: (signal) => last(signal, (limited) => batch.confirm(limited)),
  });
  return {
    begin: async (...call) => lasting(await rows.read(...call)),
    read: async (plan, from, size, signal) =>
      lasting(await last(signal, (limited) => rows.read(plan, from, size, limited))),
  };
}

/**
 * Returns a function that asks a store again while it is unavailable or hangs. `waitMs`: how long the store may take
 * beside, because it was asked to wait.
 */
export function retrying({
  retryMs,
  onRetry,
  now = () => performance.now(),
  pause = sleepFor,
}: RetryOptions): <T>(
  signal: AbortSignal,
  ask: (limited: AbortSignal) => Promise<T>,
  waitMs?: number,
) => Promise<T> {
  return async (signal, ask, waitMs = 0) => {
    const end = now() + retryMs + waitMs;
    for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
      try {
        return await withDeadline(end - now(), signal, ask);
      } catch (error) {
        if (!isUnavailable(error) || now() + wait >= end) throw error;
      }
      await pause(wait, signal);
      onRetry?.();
    }
  };
}

async function sleepFor(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted(); // throws the signal's own reason: the timer's error has it only as its cause
    throw error;
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'store-unavailable';
}
