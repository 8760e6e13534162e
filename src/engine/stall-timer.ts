/** What is looked at from time to time: an answer whose reader does not take it. */
export interface Watched {
  check(): void;
}

/** Fails a stream whose reader took nothing for too long. */
export class StallError extends Error {
  constructor(stallTimeoutMs: number) {
    super(`The client took no byte for ${stallTimeoutMs} ms.`);
    this.name = 'StallError';
  }
}

/** The client closed the connection before the answer was out. */
export class ClientGoneError extends Error {
  constructor() {
    super('The client closed the connection.');
    this.name = 'ClientGoneError';
  }
}

/** The engine stops and its grace time is over. */
export class StoppedError extends Error {
  constructor() {
    super('The server stopped before the answer was out.');
    this.name = 'StoppedError';
  }
}

/** A round over all answers is made in so many pieces: thousands of them at once would hold everybody else up for 50 ms. */
const SLICES = 20;

/** One timer for all blocked answers of an engine; it runs only while there are any. */
export class Watch {
  /** A reader that takes no byte for so long is cut. */
  readonly stallTimeoutMs: number;
  /** The time in milliseconds, from any start. */
  readonly now: () => number;
  private readonly intervalMs: number;
  private readonly watched = new Set<Watched>();
  /**
   * Those that this round has still to look at; with slice 0 the next one begins. null: none is under way. An iterator that is
   * kept and not used would keep every table that the set has had since.
   */
  private round: Iterator<Watched> | null = null;
  /** So many are looked at in each slice of this round: all that were there when it began, whoever leaves meanwhile. */
  private share = 0;
  private slice = 0;
  private timer: NodeJS.Timeout | null = null;

  constructor(stallTimeoutMs: number, now: () => number = () => performance.now()) {
    this.stallTimeoutMs = stallTimeoutMs;
    this.now = now;
    // A second is short against the timers this stands in for (10 s) and long against what a check costs (10 us).
    this.intervalMs = Math.max(10, Math.min(1000, stallTimeoutMs / 8)) / SLICES;
  }

  add(answer: Watched): void {
    this.watched.add(answer);
    if (this.timer !== null) return;
    this.slice = 1; // who comes first is looked at after a whole interval, too
    this.timer = setInterval(() => this.checkSome(), this.intervalMs).unref();
  }

  delete(answer: Watched): void {
    this.watched.delete(answer);
  }

  private checkSome(): void {
    if (this.watched.size === 0 && this.timer !== null) {
      clearInterval(this.timer);
      this.timer = null;
      this.round = null;
      return;
    }
    if (this.slice === 0) {
      this.round = this.watched.values();
      this.share = Math.ceil(this.watched.size / SLICES);
    }
    this.slice = (this.slice + 1) % SLICES;
    for (let left = this.share; left > 0; left--) {
      const next = this.round?.next();
      if (next?.done !== false) return;
      next.value.check();
    }
  }
}
