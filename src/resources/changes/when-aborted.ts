/** By signal: what is to be called. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `callback` when a signal aborts that thousands wait for. Returns a function that takes it back. The signal gets
 * one listener in all, because an EventTarget goes through its listeners whenever one is added or removed.
 */
export function whenAborted(signal: AbortSignal, callback: () => void): () => void {
  const callbacks = waiting.get(signal) ?? listen(signal);
  callbacks.add(callback);
  return () => void callbacks.delete(callback);
}

function listen(signal: AbortSignal): Set<() => void> {
  const callbacks = new Set<() => void>();
  waiting.set(signal, callbacks);
  signal.addEventListener(
    'abort',
    () => {
      for (const callback of callbacks) callback();
    },
    { once: true },
  );
  return callbacks;
}
