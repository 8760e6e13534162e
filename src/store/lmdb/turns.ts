/** How long looks may follow one another before other work of the process gets its turn. */
const TURN_MILLISECONDS = 4;

interface Turn {
  run(): void;
  fail(reason: unknown): void;
}

/**
 * Turns: looks at an embedded store are synchronous, and nothing slows a fast reader down but the event loop itself. So
 * looks queue up, first come first served, and run from setImmediate: after at most 4 ms (plus the look that is under
 * way) the loop goes on to sockets and timers. A page waits for the streams before it, at most one look each, and
 * sixty-four streams hold the loop no longer than one.
 */
export class Turns {
  readonly #waiting: Turn[] = [];
  readonly #now: () => number;

  /** `now` is a clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** The result of `look`, taken when its turn comes. Rejects with the signal's reason when that is aborted by then. */
  take<T>(look: () => T, signal: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      const run = (): void => {
        signal.throwIfAborted();
        resolve(look());
      };
      this.#waiting.push({ run, fail: reject });
      if (this.#waiting.length === 1) setImmediate(this.#run);
    });
  }

  readonly #run = (): void => {
    const end = this.#now() + TURN_MILLISECONDS;
    do {
      const turn = this.#waiting[0];
      try {
        turn?.run();
      } catch (error) {
        turn?.fail(error);
      }
      this.#waiting.shift(); // only now: a look that joins meanwhile must not ask for a second setImmediate
    } while (this.#waiting.length > 0 && this.#now() < end);
    if (this.#waiting.length > 0) setImmediate(this.#run);
  };
}
