import { setMaxListeners } from 'node:events';
import { storeUnavailable } from '../../base/errors.ts';
import { passSpan } from '../../base/span.ts';

/**
 * Runs `work` with a signal that aborts with the caller's, or with `store-unavailable` after `ms` milliseconds (null:
 * never). Only an abort frees a read from a server that hangs: socketTimeoutMS and timeoutMS do not.
 */
export async function withDeadline<T>(
  ms: number | null,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  if (signal) passSpan(signal, controller.signal);
  const onAbort = () => controller.abort(signal?.reason);
  const onTime = () => controller.abort(tooLate(ms));
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
 * Waits for a promise under way, for at most `ms` milliseconds (null: any time) and until the signal aborts. It makes
 * no signal of its own: thousands may wait for one promise, and each would cost a microsecond.
 */
export function awaitAtMost<T>(
  ms: number | null,
  signal: AbortSignal | undefined,
  underWay: Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    const fail = (reason: Error): void => {
      end();
      reject(reason);
    };
    const onAbort = () => fail(signal?.reason as Error);
    const timer = ms === null ? undefined : setTimeout(() => fail(tooLate(ms)), ms);
    if (signal?.aborted) onAbort();
    else signal?.addEventListener('abort', onAbort);
    underWay.then((value) => {
      end();
      resolve(value);
    }, fail);
  });
}

function tooLate(ms: number | null): Error {
  return storeUnavailable(new Error(`no response within ${ms} ms`));
}

/**
 * Whether a promise resolves within `ms` milliseconds. Rejects as it does by then. Its owner sees a later rejection.
 */
export async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
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

/**
 * Aborts with the first of some signals, or of `until`, which ends the listening to the others. AbortSignal.any is not used:
 * on Node 20 it leaks on long-lived signals, and it does not take the signal of a request (engine/exchange-signal.ts).
 */
export function firstAbort(signals: readonly AbortSignal[], until: AbortSignal): AbortSignal {
  const own = new AbortController();
  setMaxListeners(0, own.signal, until); // one for each set
  for (const one of signals) passSpan(one, own.signal);
  const listen = (one: AbortSignal, options: { readonly signal?: AbortSignal }) =>
    one.aborted ? own.abort(one.reason) : one.addEventListener('abort', () => own.abort(one.reason), options);
  for (const one of signals) listen(one, { signal: until });
  listen(until, {});
  return own.signal;
}
