import { AppError } from '../errors.ts';
import { PROBLEMS } from '../problems.ts';

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
  readonly probe?: OverloadProbe | undefined;
}

const LOOK_MS = 100;
/** The weight of the newest measurement. One pause of 300 ms refuses no request; half a second of delay does. */
const NEWEST = 0.3;
/** Requests are refused until the delay is below this share of its limit. Without it the guard would oscillate. */
const RECOVERED = 0.7;

/** At or below this number of requests in progress there is no backlog: the pace of a few requests is no measure. */
const FEW = 32;

export type OverloadGuard = ReturnType<typeof createOverloadGuard>;

/**
 * Detects more work than the process can do well: its event loop is delayed, requests in progress would make the next
 * one wait too long, or its memory is above its limit. It then refuses requests early, which is cheap, until the
 * process has caught up.
 */
export function createOverloadGuard({
  maxLoopDelayMs,
  maxWaitMs,
  maxMemoryBytes,
  probe = { memoryBytes: () => process.memoryUsage.rss(), now: () => performance.now() },
}: OverloadOptions) {
  const backlog = createBacklog();
  let timer: NodeJS.Timeout | undefined;
  let expected = 0;
  let delayMs = 0;
  let reason: string | null = null;
  let memoryBytes = 0;

  /** The system reads it from a file: without descriptors it counts as it was, because a timer that fails ends the process. */
  const memoryNow = (): number => {
    try {
      return probe.memoryBytes();
    } catch {
      return memoryBytes;
    }
  };

  /** The delay of the timer that calls it is what it measures. */
  const look = (): void => {
    const now = probe.now();
    memoryBytes = memoryNow();
    const late = Math.max(0, now - expected);
    backlog.look(LOOK_MS + late);
    expected = now + LOOK_MS;
    delayMs += NEWEST * (late - delayMs);
    if (delayMs > (reason === null ? 1 : RECOVERED) * maxLoopDelayMs)
      reason = `The delay of the event loop exceeds MAX_LOOP_DELAY (${maxLoopDelayMs} ms)`;
    else if (memoryBytes > maxMemoryBytes)
      reason = `The server has reached its memory limit (${Math.round(maxMemoryBytes / 2 ** 20)} MiB, see MAX_MEMORY)`;
    else reason = null;
  };

  /** The number of requests in progress changes with each request. The other signs are measured periodically. */
  const why = (): string | null => {
    if (reason !== null || backlog.waitMs() <= maxWaitMs) return reason;
    return `A request would now wait longer than MAX_WAIT (${maxWaitMs} ms)`;
  };

  return {
    /** Counts the requests that are admitted: its `began` and `done` must be called. */
    backlog,
    get overloaded(): boolean {
      return why() !== null;
    },
    /** Returns why a request must be refused now; null when it is admitted. */
    refusal(): AppError | null {
      const now = why();
      return now === null
        ? null
        : new AppError('overloaded', `${now}. Try again in ${PROBLEMS.overloaded.retry} s.`);
    },
    /** Starts to measure. Called once the server listens, because work before that delays no request. */
    start(): void {
      expected = probe.now() + LOOK_MS;
      timer = setInterval(look, LOOK_MS).unref();
    },
    close: () => clearInterval(timer),
  };
}

/**
 * Estimates how long a request that arrives now would wait: requests in progress divided by the pace of answers
 * (Little's law). A request that waits for bytes of its client is not counted.
 */
function createBacklog() {
  let underWay = 0;
  let answered = 0;
  /** Answers per millisecond while there was a backlog throughout; null when there was none. */
  let pace: number | null = null;
  let wasLong = false;
  return {
    began: (): void => {
      underWay++;
    },
    done: (): void => {
      underWay--;
      answered++;
    },
    /** The wait in milliseconds. It is 0 while few requests are in progress, or while the pace is not known yet. */
    waitMs: (): number => (pace === null || underWay <= FEW ? 0 : underWay / pace),
    /** Measures the pace. To be called repeatedly, with `elapsedMs` since the previous call. */
    look(elapsedMs: number): void {
      const isLong = underWay > FEW;
      const latest = answered / elapsedMs;
      pace = isLong && wasLong ? (pace ?? latest) + NEWEST * (latest - (pace ?? latest)) : null;
      answered = 0;
      wasLong = isLong;
    },
  };
}
