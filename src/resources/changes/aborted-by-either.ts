import { whenAborted } from './when-aborted.ts';

/**
 * Resolves as `work` does. Its signal aborts with the reader's, and when the server stops: it then resolves with null.
 * AbortSignal.any is not used, because on Node 20 it leaks on long-lived signals.
 */
export async function abortedByEither<T>(
  signal: AbortSignal,
  stopping: AbortSignal | null,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  signal.throwIfAborted();
  if (!stopping) return work(signal);
  if (stopping.aborted) return null;
  const either = new AbortController();
  const abort = () => either.abort(signal.reason);
  const stop = () => either.abort(stopping.reason);
  signal.addEventListener('abort', abort);
  const forget = whenAborted(stopping, stop);
  try {
    return await work(either.signal);
  } catch (error) {
    signal.throwIfAborted();
    if (isAborted(stopping)) return null;
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    forget();
  }
}

/** TypeScript takes the state of a signal for unchanged after an await. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
