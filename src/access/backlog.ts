/**
 * At or below this number of requests in progress there is no backlog, however slow each request is: the pace of a
 * few requests is no measure.
 */
const FEW = 32;
/** The weight of the newest measurement of the pace. */
const NEWEST = 0.3;

/**
 * Estimates how long a request that arrives now would wait: the requests in progress divided by the pace at which
 * such requests are answered (Little's law). It counts requests whose answer is the server's own work. A request that
 * waits for bytes of its client is not counted.
 */
export class Backlog {
  #underWay = 0;
  #answered = 0;
  /** Answers per millisecond while there was a backlog throughout; null when there was none. */
  #pace: number | null = null;
  #wasLong = false;

  began(): void {
    this.#underWay++;
  }

  done(): void {
    this.#underWay--;
    this.#answered++;
  }

  /** The wait in milliseconds. It is 0 while few requests are in progress, or while the pace is not known yet. */
  get waitMs(): number {
    return this.#pace === null || this.#underWay <= FEW ? 0 : this.#underWay / this.#pace;
  }

  /** Measures the pace. To be called repeatedly, with `elapsedMs` since the previous call. */
  look(elapsedMs: number): void {
    const isLong = this.#underWay > FEW;
    const pace = this.#answered / elapsedMs;
    if (!isLong || !this.#wasLong) this.#pace = null;
    else this.#pace = this.#pace === null ? pace : this.#pace + NEWEST * (pace - this.#pace);
    this.#answered = 0;
    this.#wasLong = isLong;
  }
}
