import { AppError } from '../base/errors.ts';
import { PROBLEMS } from '../base/problems.ts';

/** What the guard measures. It is injected, so that a test can overload an idle server. */
export interface OverloadProbe {
  /** Resident memory of the process in bytes. */
  readonly memoryBytes: () => number;
  /** A clock in milliseconds. */
  readonly now: () => number;
}

interface OverloadOptions {
  /** Requests are refused while the mean delay of the event loop is above this. Milliseconds. */
  readonly maxLoopDelayMs: number;
  /** A request is refused when it would wait longer than this. Milliseconds. */
  readonly maxWaitMs: number;
  /** Requests are refused while resident memory is above this. Bytes. */
  readonly maxMemoryBytes: number;
}

const PROCESS: OverloadProbe = {
  memoryBytes: () => process.memoryUsage.rss(),
  now: () => performance.now(),
};
const LOOK_MS = 100;
/** The weight of the newest measurement. One pause of 300 ms refuses no request; half a second of delay does. */
const NEWEST = 0.3;
/** Requests are refused until the delay is below this share of its limit. Without it the guard would oscillate. */
const RECOVERED = 0.7;

/** At or below this number of requests in progress there is no backlog: the pace of a few requests is no measure. */
const FEW = 32;

/**
 * Detects more work than the process can do well: its event loop is delayed, requests in progress would make the next
 * one wait too long, or its memory is above its limit. It then refuses requests early, which is cheap, until the
 * process has caught up.
 */
export class OverloadGuard {
  /** Counts the requests that are admitted: its `began` and `done` must be called. */
  readonly backlog = new Backlog();
  readonly #limits: OverloadOptions;
  readonly #probe: OverloadProbe;
  #timer: NodeJS.Timeout | undefined;
  #expected = 0;
  #delayMs = 0;
  #memoryBytes = 0;
  #reason: string | null = null;

  /** The limits are those that `limits` has when it looks. */
  constructor(limits: OverloadOptions, probe: OverloadProbe = PROCESS) {
    this.#limits = limits;
    this.#probe = probe;
  }

  get overloaded(): boolean {
    return this.#why() !== null;
  }

  /** Returns why a request must be refused now; null when it is admitted. */
  refusal(): AppError | null {
    const why = this.#why();
    return why === null
      ? null
      : new AppError('overloaded', `${why}. Try again in ${PROBLEMS.overloaded.retry} s.`);
  }

  /** Starts to measure. Called once the server listens, because work before that delays no request. */
  start(): void {
    this.#expected = this.#probe.now() + LOOK_MS;
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** The number of requests in progress changes with each request. The other signs are measured periodically. */
  #why(): string | null {
    const { maxWaitMs } = this.#limits;
    if (this.#reason !== null || this.backlog.waitMs() <= maxWaitMs) return this.#reason;
    return `A request would now wait longer than MAX_WAIT (${maxWaitMs} ms)`;
  }

  /** The delay of the timer that calls it is what it measures. */
  #look(): void {
    const { maxLoopDelayMs, maxMemoryBytes } = this.#limits;
    const now = this.#probe.now();
    this.#memoryBytes = this.#memoryNow();
    const late = Math.max(0, now - this.#expected);
    this.backlog.look(LOOK_MS + late);
    this.#expected = now + LOOK_MS;
    this.#delayMs += NEWEST * (late - this.#delayMs);
    if (this.#delayMs > (this.#reason === null ? 1 : RECOVERED) * maxLoopDelayMs)
      this.#reason = `The delay of the event loop exceeds MAX_LOOP_DELAY (${maxLoopDelayMs} ms)`;
    else if (this.#memoryBytes > maxMemoryBytes)
      this.#reason = `The server has reached its memory limit (${Math.round(maxMemoryBytes / 2 ** 20)} MiB, see MAX_MEMORY)`;
    else this.#reason = null;
  }

  /** The system reads it from a file: without descriptors it counts as it was, because a timer that fails ends the process. */
  #memoryNow(): number {
    try {
      return this.#probe.memoryBytes();
    } catch {
      return this.#memoryBytes;
    }
  }
}

/**
 * Estimates how long a request that arrives now would wait: requests in progress divided by the pace of answers
 * (Little's law). A request that waits for bytes of its client is not counted.
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

  /** A request that is in progress waits for nothing that this process does, until the function is called. */
  pause(): () => void {
    this.#underWay--;
    return () => {
      this.#underWay++;
    };
  }

  /** The wait in milliseconds. It is 0 while few requests are in progress, or while the pace is not known yet. */
  waitMs(): number {
    return this.#pace === null || this.#underWay <= FEW ? 0 : this.#underWay / this.#pace;
  }

  /** Measures the pace. To be called repeatedly, with `elapsedMs` since the previous call. */
  look(elapsedMs: number): void {
    const isLong = this.#underWay > FEW;
    const latest = this.#answered / elapsedMs;
    const before = this.#pace ?? latest;
    this.#pace = isLong && this.#wasLong ? before + NEWEST * (latest - before) : null;
    this.#answered = 0;
    this.#wasLong = isLong;
  }
}
