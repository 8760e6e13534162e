import { AppError } from '../errors.ts';
import { Backlog } from './backlog.ts';

/** What the guard looks at; injected, so that a test can overload a server that has nothing to do. */
export interface OverloadProbe {
  /** Resident memory of the process in bytes. */
  readonly memoryBytes: () => number;
  /** A clock in milliseconds. */
  readonly now: () => number;
}

export interface OverloadOptions {
  /** Above this mean lateness of the event loop requests are refused. Milliseconds. */
  readonly maxLoopDelayMs: number;
  /** When a request that comes now would wait longer, it is refused. Milliseconds. */
  readonly maxWaitMs: number;
  /** Above this memory requests are refused. Bytes. */
  readonly maxMemoryBytes: number;
  readonly probe?: OverloadProbe;
}

const LOOK_MS = 100;
/** Weight of the newest look: a pause of 300 ms alone refuses nobody, half a second of being late does. */
const NEWEST = 0.3;
/** Refused until the lateness is below this share of its bound: else the guard would flutter. */
const RECOVERED = 0.7;
/** What Retry-After says; the guard looks every 100 ms. Seconds. */
const RETRY_SECONDS = 2;

const PROBE: OverloadProbe = { memoryBytes: () => process.memoryUsage.rss(), now: () => performance.now() };

/**
 * Says when the process has more to do than it can do well: its event loop runs late, so that whatever is let in now only
 * makes all others wait, or so many requests are under way that the next one would wait for long, or its memory nears what it
 * may have. Then it refuses early, which is cheap, until it has caught up.
 */
export class OverloadGuard {
  /** To be told of the requests that are let in. */
  readonly backlog = new Backlog();
  private readonly options: OverloadOptions;
  private readonly probe: OverloadProbe;
  private timer: NodeJS.Timeout | null = null;
  private expected = 0;
  private delayMs = 0;
  private reason: string | null = null;

  constructor(options: OverloadOptions) {
    this.options = options;
    this.probe = options.probe ?? PROBE;
  }

  /** Begins to look: once the server listens, for what it does before makes nobody wait. */
  start(): void {
    this.expected = this.probe.now() + LOOK_MS;
    this.timer = setInterval(() => this.look(), LOOK_MS).unref();
  }

  get overloaded(): boolean {
    return this.why() !== null;
  }

  /** Why a request is not to be let in now; null when it is. */
  refusal(): AppError | null {
    const why = this.why();
    if (why === null) return null;
    return new AppError('overloaded', `${why}. Try again in ${RETRY_SECONDS} s.`, {
      headers: { 'retry-after': String(RETRY_SECONDS) },
    });
  }

  /** How many are under way changes with each request, the rest is looked at from time to time. */
  private why(): string | null {
    const { maxWaitMs } = this.options;
    if (this.reason === null && this.backlog.waitMs > maxWaitMs)
      return `Requests would wait longer than MAX_WAIT (${maxWaitMs} ms)`;
    return this.reason;
  }

  /** Called by the guard's own timer, whose lateness is what it measures. */
  look(): void {
    const now = this.probe.now();
    const late = Math.max(0, now - this.expected);
    this.backlog.look(LOOK_MS + late);
    this.expected = now + LOOK_MS;
    this.delayMs += NEWEST * (late - this.delayMs);
    const share = this.reason === null ? 1 : RECOVERED;
    const { maxLoopDelayMs, maxMemoryBytes } = this.options;
    if (this.delayMs > share * maxLoopDelayMs)
      this.reason = `The server runs late, by more than MAX_LOOP_DELAY (${maxLoopDelayMs} ms)`;
    else if (this.probe.memoryBytes() > maxMemoryBytes)
      this.reason = `The server has used what memory it may (${Math.round(maxMemoryBytes / 2 ** 20)} MiB, see MAX_MEMORY)`;
    else this.reason = null;
  }

  close(): void {
    if (this.timer !== null) clearInterval(this.timer);
  }
}
