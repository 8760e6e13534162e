/** A feed ends by itself when the server stops. Only one whose read hangs has not done so this much later. Milliseconds. */
const GRACE_MS = 1_000;

/**
 * The signals of `Want`: they abort with those of the reader, and when the server stops, for reads that wait for changes at
 * once, for others GRACE_MS later. `close` them in the end.
 */
export function endSignals(reader: AbortSignal, stopping: AbortSignal) {
  const [reads, waits] = [new AbortController(), new AbortController()];
  let timer: NodeJS.Timeout | undefined;
  const leave = () => {
    for (const each of [reads, waits]) each.abort(reader.reason);
  };
  const stop = () => {
    waits.abort(stopping.reason);
    timer = setTimeout(() => reads.abort(stopping.reason), GRACE_MS);
  };
  const events = [
    [reader, leave],
    [stopping, stop],
  ] as const;
  for (const [signal, listener] of events)
    if (signal.aborted) listener();
    else signal.addEventListener('abort', listener);
  return {
    reads: reads.signal,
    waits: waits.signal,
    close: () => {
      clearTimeout(timer);
      for (const [signal, listener] of events) signal.removeEventListener('abort', listener);
    },
  };
}
