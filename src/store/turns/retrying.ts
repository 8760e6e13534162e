import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../base/errors.ts';
import { awaitAtMost, withDeadline } from './deadline.ts';

/** An election takes 10 s by default, the restart of a container less. No client waits longer than this. */
export const RETRY_MS = 30_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

export interface RetryOptions {
  /** How long one read is retried in total, in milliseconds. */
  readonly retryMs: number;
  readonly onRetry?: () => void;
  readonly now?: () => number;
  /** Resolves after `ms` milliseconds. Rejects with the signal's reason when the signal is aborted earlier. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/**
 * Returns a function that asks a store again while it fails with `store-unavailable`, or hangs. Pauses grow from 50 ms to
 * 1 s. After `retryMs` in total it rejects as the store does. `waitMs`: how long the store may take beside, because it was
 * asked to wait.
 */
export function retrying({
  retryMs,
  onRetry,
  now = () => performance.now(),
  pause = (ms, signal) => awaitAtMost(null, signal, sleep(ms)),
}: RetryOptions): <T>(
  signal: AbortSignal,
  ask: (limited: AbortSignal) => Promise<T>,
  waitMs?: number,
) => Promise<T> {
  return async (signal, ask, waitMs = 0) => {
    const end = now() + retryMs + waitMs;
    for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
      try {
        return await withDeadline(Math.max(0, end - now()), signal, ask); // a pause may last longer than it was asked to
      } catch (error) {
        if (!isUnavailable(error) || now() + wait >= end) throw error;
      }
      await pause(wait, signal);
      onRetry?.();
    }
  };
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'store-unavailable';
}
