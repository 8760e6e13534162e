/** How often to look for changes by other processes. Milliseconds. */
const POLL_MS = 50;

/** Returns the state of a log as a text that differs after each change. Throws when the file cannot be read. */
export type LogVersion = () => string;

interface Waiter {
  readonly version: LogVersion;
  /** The version that it knows. */
  readonly seen: string;
  readonly wake: () => void;
}

/**
 * Wakes readers that wait for changes: after each transaction of this process, and by a poll for those of other
 * processes. However many readers wait, a log is looked at once. Nothing runs while no one waits.
 */
export class LogWatch {
  readonly #waiting = new Set<Waiter>();
  readonly #hasChanged: () => boolean;
  #poll: NodeJS.Timeout | undefined;
  #isDue = false;

  /** `hasChanged`: whether another process may have written since the last call. */
  constructor(hasChanged: () => boolean) {
    this.#hasChanged = hasChanged;
  }

  /**
   * Resolves when the version of a log is no longer the one that was seen, or is not known, or after this many
   * milliseconds. Rejects with the signal's reason.
   */
  async wait(version: LogVersion, seen: string, ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (version() !== seen) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        this.#waiting.delete(waiter);
        if (this.#waiting.size === 0) clearInterval(this.#poll);
        resolve();
      };
      const waiter = { version, seen, wake };
      const timer = setTimeout(wake, ms);
      signal.addEventListener('abort', wake);
      if (this.#waiting.size === 0)
        this.#poll = setInterval(() => this.#hasChanged() && this.#look(), POLL_MS);
      this.#waiting.add(waiter);
    });
    signal.throwIfAborted();
  }

  /** To be called after each transaction of this process. */
  committed(): void {
    if (this.#isDue || this.#waiting.size === 0) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.#look();
    });
  }

  /** Wakes all. What they look at next shows them that the store is closed. */
  close(): void {
    for (const { wake } of this.#waiting) wake();
  }

  #look(): void {
    const versions = new Map<LogVersion, string | null>();
    for (const { version, seen, wake } of this.#waiting) {
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
