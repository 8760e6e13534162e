import { AppError } from '../errors.ts';
import { PROBLEMS } from '../problems.ts';

/** What the guard measures. It is injected, so that a test can overload an idle server. */
export interface OverloadProbe {
  /** Resident memory of the process in bytes. */
  readonly memoryBytes: () => number;
  /** A clock in milliseconds. */
  readonly now: () => number;
}

export interface OverloadOptions {
  /** Requests are refused while the mean delay of the event loop is above this. Milliseconds. */
  readonly maxLoopDelayMs: number;
  /** A request is refused when it would wait longer than this. Milliseconds. */
  readonly maxWaitMs: number;
  /** Requests are refused while resident memory is above this. Bytes. */
  readonly maxMemoryBytes: number;
  readonly probe?: OverloadProbe;
}

const LOOK_MS = 100;
/** The weight of the newest measurement. One pause of 300 ms refuses no request; half a second of delay does. */
const NEWEST = 0.3;
/** Requests are refused until the delay is below this share of its limit. Without it the guard would oscillate. */
const RECOVERED = 0.7;

const PROBE: OverloadProbe = { memoryBytes: () => process.memoryUsage.rss(), now: () => performance.now() };

/**
 * Detects that the process has more work than it can do well. There are three signs: its event loop is delayed, so
 * that every further request only makes all others wait; the requests in progress would make the next one
 * wait too long; or its memory is above its limit. The guard then refuses requests early, which is cheap, until the
 * process has caught up.
 */
export class OverloadGuard {
  /** Counts the requests that are admitted: its `began` and `done` must be called. */
  readonly backlog = new Backlog();
  readonly #options: OverloadOptions;
  readonly #probe: OverloadProbe;
  #timer: NodeJS.Timeout | null = null;
  #expected = 0;
  #delayMs = 0;
  #reason: string | null = null;

  constructor(options: OverloadOptions) {
    this.#options = options;
    this.#probe = options.probe ?? PROBE;
  }

  /** Starts to measure. Called once the server listens, because work before that delays no request. */
  start(): void {
    this.#expected = this.#probe.now() + LOOK_MS;
    this.#timer = setInterval(() => this.look(), LOOK_MS).unref();
  }

  get overloaded(): boolean {
    return this.#why() !== null;
  }

  /** Returns why a request must be refused now; null when it is admitted. */
  refusal(): AppError | null {
    const why = this.#why();
    if (why === null) return null;
    return new AppError('overloaded', `${why}. Try again in ${PROBLEMS.overloaded.retry} s.`);
  }

  /** The number of requests in progress changes with each request. The other signs are measured periodically. */
  #why(): string | null {
    const { maxWaitMs } = this.#options;
    if (this.#reason === null && this.backlog.waitMs > maxWaitMs)
      return `A request would now wait longer than MAX_WAIT (${maxWaitMs} ms)`;
    return this.#reason;
  }

  /** Called by the guard's own timer. The delay of that timer is what it measures. */
  look(): void {
    const now = this.#probe.now();
    const late = Math.max(0, now - this.#expected);
    this.backlog.look(LOOK_MS + late);
    this.#expected = now + LOOK_MS;
    this.#delayMs += NEWEST * (late - this.#delayMs);
    const share = this.#reason === null ? 1 : RECOVERED;
    const { maxLoopDelayMs, maxMemoryBytes } = this.#options;
    if (this.#delayMs > share * maxLoopDelayMs)
      this.#reason = `The delay of the event loop exceeds MAX_LOOP_DELAY (${maxLoopDelayMs} ms)`;
    else if (this.#probe.memoryBytes() > maxMemoryBytes)
      this.#reason = `The server has reached its memory limit (${Math.round(maxMemoryBytes / 2 ** 20)} MiB, see MAX_MEMORY)`;
    else this.#reason = null;
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }
}

/**
 * At or below this number of requests in progress there is no backlog, however slow each request is: the pace of a
 * few requests is no measure.
 */
const FEW = 32;

/**
 * Estimates how long a request that arrives now would wait: the requests in progress divided by the pace at which
 * such requests are answered (Little's law). It counts requests whose answer is the server's own work. A request that
 * waits for bytes of its client is not counted.
 */
class Backlog {
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
