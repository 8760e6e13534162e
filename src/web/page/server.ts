/** Plots the server's counters each second while the page is visible. */
import { say } from './dom.ts';
import { quantile, readMetrics, type Metrics } from './metrics.ts';
import { plot } from './plot.ts';
import { counted, reasonOf } from './text.ts';

const EVERY_MS = 1000;

/** What the server says of itself. Rows are counted since its start. */
export interface Reading {
  readonly rowsRead: number;
  readonly streams: number;
  readonly stalled: number;
  /** Megabytes. */
  readonly memory: number;
}

/** Starts the plots. Returns a function that subscribes to readings. */
export function showServer(): (listener: (reading: Reading) => void) => void {
  const plots = {
    requests: plot('plot-requests', 'Requests per second'),
    streams: plot('plot-streams', 'Open streams'),
    memory: plot('plot-memory', 'Memory of the server in MB'),
    latency: plot('plot-latency', 'Time to answer in ms: half of the requests, and 99 of 100', 2),
  };
  const listeners: ((reading: Reading) => void)[] = [];
  let last: { readonly at: number; readonly metrics: Metrics } | null = null;

  const look = async () => {
    const metrics = await readMetrics();
    const now = { at: performance.now(), metrics };
    const reading = {
      rowsRead: metrics.sum('sluice_store_rows_total'),
      streams: metrics.sum('sluice_streams_open'),
      stalled: metrics.sum('sluice_streams_stalled'),
      memory: metrics.sum('process_resident_memory_bytes') / 1e6,
    };
    plots.streams.push(reading.streams);
    say('now-streams', counted(reading.streams));
    plots.memory.push(reading.memory);
    say('now-memory', counted(reading.memory));
    const perSecond = last
      ? ((metrics.requests() - last.metrics.requests()) * 1000) / (now.at - last.at)
      : null;
    const before = last?.metrics.durations() ?? metrics.durations();
    const [half, most] = [0.5, 0.99].map((share) => quantile(before, metrics.durations(), share));
    plots.requests.push(perSecond);
    plots.latency.push(inMs(half), inMs(most));
    if (perSecond !== null) say('now-requests', short(perSecond));
    if (half !== null && half !== undefined)
      say('now-latency', `${short(half * 1000)} and ${short((most ?? 0) * 1000)}`);
    say('server-note', '');
    for (const listener of listeners) listener(reading);
    last = now;
  };
  const goOn = async () => {
    if (!document.hidden) {
      try {
        await look();
      } catch (error) {
        say('server-note', `Metrics are not available: ${reasonOf(error)}`);
      }
    }
    setTimeout(() => void goOn(), EVERY_MS);
  };
  void goOn();
  return (listener) => listeners.push(listener);
}

function inMs(seconds: number | null | undefined): number | null {
  return seconds === null || seconds === undefined ? null : seconds * 1000;
}

function short(value: number): string {
  return value < 10 ? value.toFixed(1) : counted(value);
}
