/** Work that all callers share: for each key at most one run is under way, and at most one more waits for it to end. */
export interface SharedRuns<Key, Result = void> {
  /** Returns the run under way, or begins one. Null when the last one that succeeded began at most `ageMs` ago. */
  recent(key: Key, ageMs: number): Promise<Result> | null;
  /** A run that begins now or later, so it sees everything that happened before the call. */
  fresh(key: Key): Promise<Result>;
}

/** `now` is a clock in milliseconds. */
export function coalesced<Key, Result = void>(
  work: (key: Key) => Promise<Result>,
  now = () => performance.now(),
): SharedRuns<Key, Result> {
  const running = new Map<Key, Promise<Result>>();
  const waiting = new Map<Key, Promise<Result>>();
  const succeeded = new Map<Key, number>();
  const begin = (key: Key): Promise<Result> => {
    waiting.delete(key);
    const began = now();
    const run = work(key)
      .then((result) => {
        succeeded.set(key, began);
        return result;
      })
      .finally(() => running.delete(key));
    running.set(key, run);
    return handled(run);
  };
  return {
    recent: (key, ageMs) =>
      now() - (succeeded.get(key) ?? -Infinity) <= ageMs ? null : (running.get(key) ?? begin(key)),
    fresh: (key) => {
      const first = running.get(key);
      if (!first) return begin(key);
      const next = waiting.get(key) ?? handled(first.catch(() => undefined).then(() => begin(key)));
      waiting.set(key, next);
      return next;
    },
  };
}

/** The callers may have left. A failure is for those that wait, and would be unhandled when none does. */
function handled<Result>(run: Promise<Result>): Promise<Result> {
  run.catch(() => undefined);
  return run;
}
