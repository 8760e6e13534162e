/** How long those that wait may go on in a row before the process looks at its sockets and timers. Milliseconds. */
const TURN_MS = 2;

/** Lets many go on one after another, so that a request waits for the work of a few of them, and not of all. */
export class LoopTurns {
  readonly #waiting: (() => void)[] = [];
  readonly #now: () => number;
  readonly #turnMs: number;
  readonly #later: (run: () => void) => unknown;

  /**
   * `now` is a clock in milliseconds, `turnMs` how long those that wait may go on in a row, and `later` calls when they may go on
   * again.
   */
  constructor(
    now: () => number = () => performance.now(),
    turnMs = TURN_MS,
    later: (run: () => void) => unknown = setImmediate,
  ) {
    this.#now = now;
    this.#turnMs = turnMs;
    this.#later = later;
  }

  /** Resolves after all earlier calls have, and after what their callers then did at once. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) setImmediate(this.#run);
    });
  }

  readonly #run = (): void => {
    const end = this.#now() + this.#turnMs;
    const step = (): void => {
      if (this.#now() >= end) {
        this.#later(this.#run);
        return;
      }
      this.#waiting.shift()?.();
      // A tick that a microtask asks for comes when all microtasks are done: what was just let go has done its work.
      if (this.#waiting.length > 0) queueMicrotask(() => process.nextTick(step));
    };
    step();
  };
}
