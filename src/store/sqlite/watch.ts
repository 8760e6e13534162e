/** How often to look for changes by other processes. Milliseconds. */
const POLL_MS = 50;

/** Tells the state of a log by a text that differs after each change. Throws when the file cannot be read. */
export type LogVersion = () => string;

interface Waiter {
  /** The version that it knows. */
  readonly seen: string;
  readonly end: (failure: { readonly error: unknown } | null) => void;
}

/**
 * Wakes readers that wait for changes: after each transaction of this process, and by a poll for those of other
 * processes. However many readers wait, a log is looked at once. Nothing runs while nobody waits.
 */
export class LogWatch {
  readonly #waiting = new Map<LogVersion, Set<Waiter>>();
  readonly #hasChanged: () => boolean;
  #poll: NodeJS.Timeout | null = null;
  #isDue = false;

  /** `hasChanged`: whether another process may have written since the last call. */
  constructor(hasChanged: () => boolean) {
    this.#hasChanged = hasChanged;
  }

  /**
   * Resolves when the version of a log is no longer the one that was seen, or after so many milliseconds. Rejects with
   * the signal's reason, and with the error of `version`.
   */
  async wait(version: LogVersion, seen: string, ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (version() !== seen) return;
    const failure = await new Promise<Parameters<Waiter['end']>[0]>((resolve) => {
      const waiter: Waiter = {
        seen,
        end: (outcome) => {
          clearTimeout(timer);
          signal.removeEventListener('abort', abort);
          this.#remove(version, waiter);
          resolve(outcome);
        },
      };
      const abort = (): void => waiter.end({ error: signal.reason });
      const timer = setTimeout(() => waiter.end(null), ms);
      signal.addEventListener('abort', abort);
      this.#add(version, waiter);
    });
    if (failure) throw failure.error;
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
    for (const waiters of [...this.#waiting.values()]) for (const { end } of [...waiters]) end(null);
  }

  #look(): void {
    for (const [version, waiters] of [...this.#waiting]) {
      try {
        const now = version();
        for (const { seen, end } of [...waiters]) if (seen !== now) end(null);
      } catch (error) {
        for (const { end } of [...waiters]) end({ error });
      }
    }
  }

  #add(version: LogVersion, waiter: Waiter): void {
    const waiters = this.#waiting.get(version) ?? new Set();
    this.#waiting.set(version, waiters.add(waiter));
    this.#poll ??= setInterval(() => {
      if (this.#hasChanged()) this.#look();
    }, POLL_MS);
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
