import type { ServerSide } from './figures.ts';

/** The sum of the values of each metric in the text format of Prometheus, and those of counters by their labels. */
export interface Reading {
  /** When it was read, in milliseconds of the clock. */
  readonly at: number;
  readonly sums: ReadonlyMap<string, number>;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})? (\S+)/;
const REQUESTS = 'sluice_requests_total';

/** Reads the text of /metrics. Answers are also summed by status, as `sluice_requests_total 429`. */
export function readMetrics(text: string, at: number): Reading {
  const sums = new Map<string, number>();
  const add = (name: string, value: number) => sums.set(name, (sums.get(name) ?? 0) + value);
  for (const line of text.split('\n')) {
    const [, name, labels = '', number] = LINE.exec(line) ?? [];
    const value = Number(number);
    if (name === undefined || name.endsWith('_bucket') || !Number.isFinite(value)) continue;
    add(name, value);
    const status = name === REQUESTS ? /status="(\d+)"/.exec(labels)?.[1] : undefined;
    if (status !== undefined) add(`${name} ${status}`, value);
  }
  return { at, sums };
}

/** What the server did between two readings. */
export function serverSide(before: Reading, after: Reading): ServerSide {
  const seconds = Math.max(0.001, (after.at - before.at) / 1000);
  const value = (name: string) => after.sums.get(name) ?? null;
  const rate = (name: string, unit = 1, least: number | null = null) => {
    const now = after.sums.get(name);
    if (now === undefined) return least;
    // A counter that has become smaller is that of another process.
    return round((Math.max(0, now - (before.sums.get(name) ?? 0)) * unit) / seconds);
  };
  const loopDelay = value('nodejs_eventloop_lag_p99_seconds');
  return {
    cpu: rate('process_cpu_seconds_total'),
    memory: value('process_resident_memory_bytes'),
    loopDelay: loopDelay === null ? null : round(loopDelay * 1000),
    store: rate('sluice_store_seconds_sum', 1000),
    transcoder: rate('sluice_transcode_seconds_total', 1000),
    socket: rate('sluice_socket_wait_seconds_total', 1000),
    streams: value('sluice_streams_open'),
    stalled: value('sluice_streams_stalled'),
    inFlight: value('sluice_requests_in_flight'),
    refused429: rate(`${REQUESTS} 429`, 1, 0),
    refused503: rate(`${REQUESTS} 503`, 1, 0),
  };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
