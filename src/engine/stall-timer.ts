/** An object that the stall timer checks periodically: an answer whose reader is not taking bytes. */
export interface Stallable {
  check(): void;
}

/** The reason with which a stream fails when its reader took nothing for too long. */
export class StallError extends Error {
  constructor(stallTimeoutMs: number) {
    super(`The client read nothing for ${stallTimeoutMs} ms.`);
    this.name = 'StallError';
  }
}

/** The client closed the connection before the answer was complete. */
export class ClientGoneError extends Error {
  constructor() {
    super('The client closed the connection.');
    this.name = 'ClientGoneError';
  }
}

/** The engine stops and its grace time has elapsed. */
export class StoppedError extends Error {
  constructor() {
    super('The server stopped before the response was complete.');
    this.name = 'StoppedError';
  }
}

/** A key without limits has cut the stream: see http/open-streams.ts. */
export class CutByOperatorError extends Error {
  constructor() {
    super('An operator cut the stream.');
    this.name = 'CutByOperatorError';
  }
}

/** One round checks all answers in so many slices. Thousands of them at once would block the event loop for 50 ms. */
const SLICES = 20;

/** One timer for all blocked answers of an engine. It runs only while there are any. */
export class StallTimer {
  /** An answer is cut when its reader takes no byte for this long. Milliseconds. */
  readonly stallTimeoutMs: number;
  /** The current time in milliseconds, counted from an arbitrary start. */
  readonly now: () => number;
  readonly #intervalMs: number;
  readonly #answers = new Set<Stallable>();
  /**
   * The answers that this round has yet to check; slice 0 begins the next round. null when no round is in progress:
   * an unused iterator would keep every table that the set has had since in memory.
   */
  #round: Iterator<Stallable> | null = null;
  /** The answers checked in each slice, of all that were there when the round began, even if some leave meanwhile. */
  #share = 0;
  #slice = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(stallTimeoutMs: number, now: () => number = () => performance.now()) {
    this.stallTimeoutMs = stallTimeoutMs;
    this.now = now;
    // Short compared with the timers that this replaces (10 s), and long compared with a check (10 us).
    this.#intervalMs = Math.max(10, Math.min(1000, stallTimeoutMs / 8)) / SLICES;
  }

  add(answer: Stallable): void {
    this.#answers.add(answer);
    if (this.#timer !== null) return;
    this.#slice = 1; // the first answer is also checked only after one full interval
    this.#timer = setInterval(() => this.#checkSome(), this.#intervalMs).unref();
  }

  delete(answer: Stallable): void {
    this.#answers.delete(answer);
  }

  #checkSome(): void {
    if (this.#answers.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
      this.#round = null;
      return;
    }
    if (this.#slice === 0) {
      this.#round = this.#answers.values();
      this.#share = Math.ceil(this.#answers.size / SLICES);
    }
    this.#slice = (this.#slice + 1) % SLICES;
    for (let left = this.#share; left > 0; left--) {
      const next = this.#round?.next();
      if (next?.done !== false) return;
      next.value.check();
    }
  }
}
