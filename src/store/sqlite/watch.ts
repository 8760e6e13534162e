/** How often to look for changes by other processes. Milliseconds. */
const POLL_MS = 50;

/** Returns the state of a log as a text that differs after each change. Throws when the file cannot be read. */
type LogVersion = () => string;

interface Waiter {
  readonly version: LogVersion;
  readonly seen: string;
  readonly wake: () => void;
}

/**
 * Wakes readers that wait for changes: after each transaction of this process, and by a poll for those of other
 * processes. However many readers wait, a log is looked at once. Nothing runs while no one waits. `hasChanged`: whether
 * another process may have written since the last call.
 */
export function logWatch(hasChanged: () => boolean) {
  const waiters = new Set<Waiter>();
  let poll: NodeJS.Timeout | undefined;
  let isDue = false;

  const lookAtAll = (): void => {
    const versions = new Map<LogVersion, string | null>();
    for (const { version, seen, wake } of waiters) {
      if (!versions.has(version)) versions.set(version, versionNow(version));
      if (versions.get(version) !== seen) wake();
    }
  };
  return {
    /**
     * Resolves when the version is another or unknown, or after `ms` milliseconds. Rejects with the signal's reason.
     */
    wait: async (version: LogVersion, seen: string, ms: number, signal: AbortSignal): Promise<void> => {
      signal.throwIfAborted();
      if (version() !== seen) return;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', wake);
          waiters.delete(waiter);
          if (waiters.size === 0) clearInterval(poll);
          resolve();
        };
        const waiter = { version, seen, wake };
        const timer = setTimeout(wake, ms);
        signal.addEventListener('abort', wake);
        if (waiters.size === 0) poll = setInterval(() => hasChanged() && lookAtAll(), POLL_MS);
        waiters.add(waiter);
      });
      signal.throwIfAborted();
    },
    /** To be called after each transaction of this process. */
    committed: (): void => {
      if (isDue || waiters.size === 0) return;
      isDue = true;
      setImmediate(() => {
        isDue = false;
        lookAtAll();
      });
    },
    /** Wakes all. What they look at next shows them that the store is closed. */
    close: (): void => {
      for (const { wake } of waiters) wake();
    },
  };
}

/** Null: it is not known, and the next look shows why. */
function versionNow(version: LogVersion): string | null {
  try {
    return version();
  } catch {
    return null;
  }
}
