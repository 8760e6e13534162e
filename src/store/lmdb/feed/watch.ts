/** How often to look for changes by other processes. Milliseconds. */
const POLL_MS = 250;

/** Tells the state of a log by a text that differs after each change. Throws when the file cannot be read. */
export type LogVersion = () => string;

interface Waiter {
  /** The version that it knows. */
  readonly seen: string;
  readonly wake: () => void;
  readonly fail: (reason: unknown) => void;
}

/**
 * Wakes readers that wait for changes: after each transaction of this process, and by a poll for those of other
 * processes. However many readers wait, a log is looked at once. Nothing runs while nobody waits.
 */
export class LogWatch {
  readonly #waiting = new Map<LogVersion, Set<Waiter>>();
  readonly #pollMs: number;
  #poll: NodeJS.Timeout | null = null;
  #isDue = false;

  constructor(pollMs = POLL_MS) {
    this.#pollMs = pollMs;
  }

  /**
   * Resolves when the version of a log is no longer the one that was seen, or after so many milliseconds. Rejects with
   * the signal's reason, and with the error of `version`.
   */
  wait(version: LogVersion, seen: string, ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (version() !== seen) {
        resolve();
        return;
      }
      const waiter: Waiter = {
        seen,
        wake: () => {
          leave();
          resolve();
        },
        fail: (reason) => {
          leave();
          reject(reason);
        },
      };
      const abort = (): void => waiter.fail(signal.reason);
      const timer = setTimeout(waiter.wake, ms);
      const leave = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        this.#remove(version, waiter);
      };
      signal.addEventListener('abort', abort);
      this.#add(version, waiter);
    });
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

  /** Wakes everybody. What they look at next tells them that the store is closed. */
  close(): void {
    for (const waiters of [...this.#waiting.values()]) for (const { wake } of [...waiters]) wake();
  }

  #look(): void {
    for (const [version, waiters] of [...this.#waiting]) {
      try {
        const now = version();
        for (const { seen, wake } of [...waiters]) if (seen !== now) wake();
      } catch (error) {
        for (const { fail } of [...waiters]) fail(error);
      }
    }
  }

  #add(version: LogVersion, waiter: Waiter): void {
    const waiters = this.#waiting.get(version) ?? new Set();
    this.#waiting.set(version, waiters.add(waiter));
    this.#poll ??= setInterval(() => this.#look(), this.#pollMs);
  }

  #remove(version: LogVersion, waiter: Waiter): void {
    const waiters = this.#waiting.get(version);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#waiting.delete(version);
    if (this.#waiting.size > 0 || !this.#poll) return;
    clearInterval(this.#poll);
    this.#poll = null;
  }
}
