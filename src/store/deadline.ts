import { storeUnavailable } from '../errors.ts';

/**
 * Runs `work` with a signal that aborts with the caller's, or with `store-unavailable` after `ms` milliseconds (null:
 * never). Only an abort frees a read from a server that hangs: socketTimeoutMS and timeoutMS do not. AbortSignal.any
 * is not used because on Node 20 it leaks on long-lived signals.
 */
export async function withDeadline<T>(
  ms: number | null,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal?.reason);
  const onTime = () => controller.abort(storeUnavailable(new Error(`no response within ${ms} ms`)));
  const timer = ms === null ? null : setTimeout(onTime, ms);
  signal?.addEventListener('abort', onAbort);
  try {
    return await work(controller.signal);
  } catch (error) {
    controller.signal.throwIfAborted(); // the driver may wrap the reason
    throw error;
  } finally {
    if (timer) clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

/**
 * Waits for a promise that is already under way, for at most `ms` milliseconds and only until the caller's signal
 * aborts.
 */
export function awaitAtMost<T>(
  ms: number,
  signal: AbortSignal | undefined,
  underWay: Promise<T>,
): Promise<T> {
  return withDeadline(ms, signal, (end) => Promise.race([underWay, rejectionOf(end)]));
}

/** Waits for a promise that is already under way, until it settles or the signal aborts. */
export function orAborted<T>(signal: AbortSignal, underWay: Promise<T>): Promise<T> {
  return withDeadline(null, signal, (end) => Promise.race([underWay, rejectionOf(end)]));
}

function rejectionOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

/**
 * Whether a promise resolves within `ms` milliseconds. Rejects when the promise rejects in this time. A later rejection
 * is left to the promise's owner.
 */
export async function settlesWithin(promise: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
