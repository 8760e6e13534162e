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

/** One timer for all blocked answers of an engine; it runs only while there are any. */
export class Watch {
  /** A reader that takes no byte for so long is cut. */
  readonly stallTimeoutMs: number;
  /** The time in milliseconds, from any start. */
  readonly now: () => number;
  private readonly intervalMs: number;
  private readonly watched = new Set<Watched>();
  private timer: NodeJS.Timeout | null = null;

  constructor(stallTimeoutMs: number, now: () => number = () => performance.now()) {
    this.stallTimeoutMs = stallTimeoutMs;
    this.now = now;
    // A second is short against the timers this stands in for (10 s) and long against what a check costs (10 us).
    this.intervalMs = Math.max(10, Math.min(1000, stallTimeoutMs / 8));
  }

  add(answer: Watched): void {
    this.watched.add(answer);
    this.timer ??= setInterval(() => this.checkAll(), this.intervalMs).unref();
  }

  delete(answer: Watched): void {
    this.watched.delete(answer);
  }

  private checkAll(): void {
    if (this.watched.size === 0 && this.timer !== null) {
      clearInterval(this.timer);
      this.timer = null;
    }
    for (const answer of this.watched) answer.check();
  }
}
