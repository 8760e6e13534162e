/** Fewer requests under way are never too many, however slow each is: the pace of a few says nothing. */
const FEW = 32;
/** Weight of the newest look at the pace. */
const NEWEST = 0.3;

/**
 * How long a request that comes now would wait: those under way, by the pace at which such are answered (Little's law).
 * Told of requests whose answer is the server's own work; one that waits for its client's bytes is none of them.
 */
export class Backlog {
  #underWay = 0;
  #answered = 0;
  /** Answers a millisecond while there was a backlog all the time; null when there was not. */
  #pace: number | null = null;
  #wasLong = false;

  began(): void {
    this.#underWay++;
  }

  done(): void {
    this.#underWay--;
    this.#answered++;
  }

  /** The wait in milliseconds; 0 while few are under way, or nobody knows yet how fast they are answered. */
  get waitMs(): number {
    return this.#pace === null || this.#underWay <= FEW ? 0 : this.#underWay / this.#pace;
  }

  /** Measures the pace. To be called again and again, `elapsedMs` after the last time. */
  look(elapsedMs: number): void {
    const isLong = this.#underWay > FEW;
    const pace = this.#answered / elapsedMs;
    if (!isLong || !this.#wasLong) this.#pace = null;
    else this.#pace = this.#pace === null ? pace : this.#pace + NEWEST * (pace - this.#pace);
    this.#answered = 0;
    this.#wasLong = isLong;
  }
}
