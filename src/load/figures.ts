/** A part of the run with one load. */
export interface Phase {
  readonly kind: 'ramp' | 'steady' | 'step';
  /** Seconds of the run at which it began and ended. */
  readonly from: number;
  readonly to: number;
  /** Pages per second that the schedule asked for at the end of the phase. null in the closed model. */
  readonly asked: number | null;
  /** Good pages per second, 304 included. */
  readonly pagesPerSecond: number;
  readonly counts: Counts;
  /** Latencies of the good pages of this phase, and of those that had no answer when it ended. */
  readonly pages: Quantiles;
  readonly firstByte: Quantiles;
  readonly delay: Quantiles;
  /** Of all pullers together, during this phase. */
  readonly rowsPerSecond: number;
  readonly bytesPerSecond: number;
  readonly client: ClientSide;
  /** The mean of the server's side. null when /metrics could not be read. */
  readonly server: ServerSide | null;
  /** Only of a step of --find: whether the condition held, and if not, why. */
  readonly held: boolean | null;
  readonly broke: string | null;
}

/** How answers ended. Each answer is counted once, in the second in which it ended. */
export interface Counts {
  /** Requests that were due: arrivals of the schedule, those of the closed model, and those of streams and feeds. */
  readonly arrivals: number;
  /** Whole answers with 200. */
  readonly ok: number;
  /** 304 to a conditional request. */
  readonly notModified: number;
  /** 429: the rate limit, the limit of streams or that of a key. */
  readonly refused429: number;
  /** 503: overload, or the store is away. */
  readonly refused503: number;
  /** Other answers from 300 to 499. */
  readonly faults4xx: number;
  /** Other answers from 500 on. */
  readonly faults5xx: number;
  /** Answers that ended before their end, and requests that could not be sent. Cuts by this client do not count. */
  readonly cut: number;
  /** Requests that had no answer when the run ended. Their latency so far is in the histogram. */
  readonly unanswered: number;
  /** Answers that are not what was asked: a checkpoint that does not fit the rows, a page that is not one. */
  readonly wrong: number;
  /** Streams of a good form that ended well but have nothing that proves them (CSV, JSON). */
  readonly unproved: number;
}

/** One second of the run. */
export interface Second extends Counts {
  /** The number of the second: 0 is the first. */
  readonly second: number;
  /** Pages per second that the schedule asked for. null in the closed model. */
  readonly asked: number | null;
  /** Requests that were due or sent, and not answered, at the end of the second. */
  readonly waiting: number;
  /** Good pages that ended in this second, 304 included. */
  readonly goodPages: number;
  /** Latencies of the good pages that ended in this second. */
  readonly pages: Quantiles;
  readonly firstByte: Quantiles;
  readonly delay: Quantiles;
  /** Rows and bytes (as received) of all pullers. */
  readonly rows: number;
  readonly bytes: number;
  /** Streams that this client has open: pullers, and followers. */
  readonly streams: number;
  readonly followers: number;
  /** Lines and heartbeats that followers received. */
  readonly lines: number;
  readonly heartbeats: number;
  readonly client: ClientSide;
  readonly server: ServerSide | null;
}

/** Milliseconds. All are null when nothing was measured. */
export interface Quantiles {
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
  readonly p999: number | null;
  readonly max: number | null;
}

export interface ClientSide {
  /** Processor time per second: 1 is one core in full. */
  readonly cpu: number;
  /** The longest delay of the event loop. */
  readonly loopDelay: number;
  /** The resident memory. */
  readonly memory: number;
}

/** The server, from /metrics: the difference to the reading before, or the value at the reading. */
export interface ServerSide {
  /** Processor time per second of all its processes: 1 is one core in full. */
  readonly cpu: number | null;
  /** The resident memory. */
  readonly memory: number | null;
  /** The p99 of the delay of its event loop. */
  readonly loopDelay: number | null;
  /** Milliseconds per second that requests waited for the store. More than 1,000 when many waited at once. */
  readonly store: number | null;
  /** Milliseconds per second in which rows were turned into JSON, CSV or Arrow. */
  readonly transcoder: number | null;
  /** Milliseconds per second that streams waited until their client took more. 1,000 for each one that waits. */
  readonly socket: number | null;
  /** Open streams, and those whose client reads nothing. */
  readonly streams: number | null;
  readonly stalled: number | null;
  /** Requests in flight. */
  readonly inFlight: number | null;
  /** Answers per second with 429 and 503. */
  readonly refused429: number | null;
  readonly refused503: number | null;
}

/**
 * A histogram as pairs of a latency and how often it came. `ticks` ascend. Tick 12 stands for 1.2 ms, with an error of at
 * most 0.1 %. The share of latencies up to tick i is the sum of counts[0..i] by the sum of all.
 */
export interface Latencies extends Quantiles {
  /** The number of latencies. */
  readonly count: number;
  readonly mean: number | null;
  /** Units of 0.1 ms. */
  readonly ticks: readonly number[];
  readonly counts: readonly number[];
}
