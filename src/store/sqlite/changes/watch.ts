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
export class LogWatch {
  readonly #hasChanged: () => boolean;
  readonly #waiters = new Set<Waiter>();
  #poll: NodeJS.Timeout | undefined;
  #isDue = false;

  constructor(hasChanged: () => boolean) {
    this.#hasChanged = hasChanged;
  }

  /** Resolves when the version is another or unknown, or after `ms` milliseconds. Rejects with the signal's reason. */
  async wait(version: LogVersion, seen: string, ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (version() !== seen) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        this.#waiters.delete(waiter);
        if (this.#waiters.size === 0) clearInterval(this.#poll);
        resolve();
      };
      const waiter = { version, seen, wake };
      const timer = setTimeout(wake, ms);
      signal.addEventListener('abort', wake);
      if (this.#waiters.size === 0)
        this.#poll = setInterval(() => this.#hasChanged() && this.#lookAtAll(), POLL_MS);
      this.#waiters.add(waiter);
    });
    signal.throwIfAborted();
  }

  /** To be called after each transaction of this process. */
  committed(): void {
    if (this.#isDue || this.#waiters.size === 0) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.#lookAtAll();
    });
  }

  /** Wakes all. What they look at next shows them that the store is closed. */
  close(): void {
    for (const { wake } of this.#waiters) wake();
  }

  #lookAtAll(): void {
    const versions = new Map<LogVersion, string | null>();
    for (const { version, seen, wake } of this.#waiters) {
      if (!versions.has(version)) versions.set(version, versionNow(version));
      if (versions.get(version) !== seen) wake();
    }
  }
}

/** Null: it is not known, and the next look shows why. */
function versionNow(version: LogVersion): string | null {
  try {
    return version();
  } catch {
    return null;
  }
}
