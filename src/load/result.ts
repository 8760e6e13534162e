import type { Latencies, Phase, Second } from './figures.ts';

/**
 * The result of a load test, as `--json` prints it. Times are milliseconds and sizes are bytes unless a field says
 * otherwise. `null` stands for what could not be measured. Seconds are counted from the beginning of the run.
 */
export interface LoadResult {
  /** The form of this file. It grows when a field changes its meaning. */
  readonly form: 1;
  /** The version of the program that made it. */
  readonly version: string;
  /** When the run began. ISO 8601, UTC. */
  readonly startedAt: string;
  /** How long the run took, in seconds. */
  readonly seconds: number;
  /** Whether it was ended early, by Ctrl-C or because the server was gone. */
  readonly interrupted: boolean;
  readonly target: Target;
  readonly options: ShownOptions;
  /** In order of time. A run without --find has `ramp` (unless --ramp is 0) and `steady`. */
  readonly phases: readonly Phase[];
  /** One entry for each second of the run, in order of time. */
  readonly series: readonly Second[];
  /**
   * Latencies by kind. Pages: of the steady phase, or with --find of the last rate that held. First bytes and delays: of
   * the whole run.
   */
  readonly latencies: Readonly<Record<LatencyKind, Latencies>>;
  /** One entry for each puller, slow and stalled readers included. */
  readonly pullers: readonly PullerRow[];
  /** How equally the pullers of full speed were served. null with fewer than two of them. */
  readonly fairness: Fairness | null;
  /** null without --followers. */
  readonly followers: Followers | null;
  /** The slowest pages and first bytes, slowest first. At most 20. */
  readonly slowest: readonly SlowRequest[];
  /** What --find found. null without it. */
  readonly found: FoundRate | null;
  readonly verdict: Verdict;
}

/**
 * `pages`: from the intended start to the last byte of a page. `firstByte`: from the request of a stream to the first
 * byte of its body. `delay`: from the sending of a write until its line has reached a follower.
 */
export type LatencyKind = 'pages' | 'firstByte' | 'delay';

/** The server, as it described itself before the run. */
export interface Target {
  /** The URL that was given, without a key. */
  readonly url: string;
  /** The server's version, from /openapi.json. */
  readonly version: string | null;
  /** What /readyz answered: the status, and the reasons that it gave. */
  readonly ready: { readonly status: number; readonly reasons: readonly string[] };
  /** The rate limit of this client, from RateLimit-Policy: `requests` in `windowSeconds`. null: there is none. */
  readonly rateLimit: { readonly requests: number; readonly windowSeconds: number } | null;
  /** Whether /metrics could be read, and why not. */
  readonly metrics: { readonly reachable: boolean; readonly reason: string | null };
  /** The resources of GET /resources, and about how many rows each has. */
  readonly resources: readonly { readonly name: string; readonly rows: number | null }[];
}

/** The options of the run, with their defaults. */
export interface ShownOptions {
  /** The words of the command line, without the key. */
  readonly command: readonly string[];
  /** `open`: arrivals by schedule. `closed`: each connection asks again when its answer is there. `none`: no pages. */
  readonly model: 'open' | 'closed' | 'none';
  /** Pages per second that the schedule asks for. null in the closed model, and with --find. */
  readonly pagesPerSecond: number | null;
  /** Connections of the readers of pages. */
  readonly connections: number;
  /** What was asked, with its share of all pages, from 0 to 1. */
  readonly queries: readonly { readonly query: string; readonly share: number }[];
  readonly pullers: number;
  readonly slow: { readonly readers: number; readonly bytesPerSecond: number } | null;
  readonly stalled: number;
  /** Cuts of pullers by this client, per minute. */
  readonly cutsPerMinute: number;
  readonly followers: number;
  /** Where the delay of followers is measured by writes. null: by heartbeats only. */
  readonly write: string | null;
  /** Format and content coding of the pulled streams. */
  readonly format: string;
  readonly compression: string;
  readonly forSeconds: number;
  readonly rampSeconds: number;
  /** The condition of --find, such as `p99<50ms`. */
  readonly find: string | null;
  readonly expectRefusals: boolean;
}

export interface PullerRow {
  readonly kind: 'full' | 'slow' | 'stalled';
  /** What it read: path and query. */
  readonly query: string;
  /** Streams that came to their end. A reader begins again. */
  readonly whole: number;
  /** Rows and bytes (as received), of all its streams. */
  readonly rows: number;
  readonly bytes: number;
  readonly rowsPerSecond: number;
  /** From its first request to the first byte of the body. null: none came. */
  readonly firstByte: number | null;
  /** The longest time between two pieces of the body while it wanted to read. */
  readonly longestGap: number;
  /** Times that this client cut it, that the server did, and that it was refused. */
  readonly cutByUs: number;
  readonly cut: number;
  readonly refused: number;
  /**
   * `proved`: checkpoints prove all rows. `partly`: up to the last checkpoint; the run ended. `framing`: whole by HTTP
   * and by its form (CSV, JSON). `wrong`: rows that do not fit their checkpoint came. `none`: nothing came to an end.
   */
  readonly proof: 'proved' | 'partly' | 'framing' | 'wrong' | 'none';
  /** Rows that a checkpoint has proved. */
  readonly provedRows: number;
  /** What was wrong, or why it ended. */
  readonly reason: string | null;
}

/** Of the pullers of full speed, by their rows per second. */
export interface Fairness {
  readonly slowest: number;
  readonly median: number;
  readonly fastest: number;
  /** Jain's index: 1 when all were equally fast, 1/n when one had everything. */
  readonly index: number;
}

/** All followers together. */
export interface Followers {
  /** How many were asked for, how many began, and how many were open at the end. */
  readonly asked: number;
  readonly begun: number;
  readonly open: number;
  /** Times that a follower was cut or refused. It begins again. */
  readonly cut: number;
  readonly refused: number;
  /** Lines of rows and removals, and checkpoints, that came. */
  readonly lines: number;
  readonly heartbeats: number;
  /** The longest time for which an open follower received nothing. */
  readonly longestSilence: number;
  /** Writes of --write, and those that failed. */
  readonly writes: number;
  readonly failedWrites: number;
  /** Lines of writes that did not reach an open follower within 10 s, and those that did. */
  readonly missed: number;
  readonly reached: number;
}

export interface SlowRequest {
  readonly kind: 'page' | 'stream';
  /** Milliseconds from the intended start to the end of a page, or to the first byte of a stream. */
  readonly latency: number;
  /** How much of this the request waited for a free connection. */
  readonly waited: number;
  /** The second of the run in which it ended. */
  readonly second: number;
  readonly query: string;
  readonly status: number;
  /** X-Request-Id of the answer, with which the server's log names it. */
  readonly requestId: string | null;
  /** The trace that it began. null without --trace. */
  readonly traceId: string | null;
}

export interface FoundRate {
  readonly condition: string;
  /** The highest rate that held, in pages per second. null: none held. */
  readonly held: number | null;
  /** The lowest rate that broke, and why. null: none broke. */
  readonly broke: number | null;
  readonly why: string | null;
}

export interface Verdict {
  /** 0: all answers were good. 1: refusals, faults or cuts, or the run failed. 2: at least one answer was wrong. */
  readonly exitCode: 0 | 1 | 2;
  /** Why the exit code is not 0. One sentence each. */
  readonly reasons: readonly string[];
  /** Why the figures may be those of this client rather than of the server. Empty when it was not the limit. */
  readonly clientLimits: readonly string[];
  /** What else a reader should know. */
  readonly notes: readonly string[];
}
