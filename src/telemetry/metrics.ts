import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client';
import type { Notes } from '../engine/edge.ts';
import { getOrMake } from '../get-or-make.ts';
import { bytes } from '../http/reply.ts';
import type { Finished } from '../http/respond.ts';
import type { Route } from '../http/route.ts';
import { Counter, Family, Histogram, overlapping, type MetricJson } from './counters.ts';
import { endOf } from './end-reason.ts';

/** The sources of the metrics that are read on demand. */
export interface MetricSources {
  readonly openStreams: () => number;
  readonly runningExports: () => number;
  /** The number of exports by state. All processes on one store report the same, but for a few seconds. */
  readonly exports: () => Readonly<Record<string, number>>;
  readonly overloaded: () => boolean;
  /** The time in which rows were transcoded, in milliseconds. */
  readonly transcodedMs: () => number;
  /** The size of the embedded store's write-ahead log. */
  readonly logBytes?: (() => number) | undefined;
}

/** The values of one process, in the form that prom-client passes between processes. */
export type MetricValues = object[];

/** What each metric is. */
const HELP = {
  sluice_requests_total:
    'Finished requests, by route, resource, method and status; status 0: the client disconnected before the response',
  sluice_answers_cut_total:
    'Responses cut before their end, by route, resource and cause: client, stalled, store, stop, fault',
  sluice_request_duration_seconds:
    'Seconds from the request to the last byte of its response, by route and resource',
  sluice_rows_sent_total: 'Rows in finished responses, by route and resource',
  sluice_sent_bytes_total: 'Body bytes of finished responses after compression, by route and resource',
  sluice_store_batches_total: 'Batches of rows read from the store',
  sluice_store_rows_total: 'Rows read from the store, counted per batch, including those of open streams',
  sluice_store_retries_total: 'Reads of streams that were repeated because the store did not respond',
  sluice_store_seconds:
    'Seconds that the store took to respond, by operation: read, count, split, insert, change, values',
  sluice_store_failures_total:
    'Failed operations of the store, by operation; operations that the server cancelled are not counted',
  sluice_store_log_bytes:
    'Bytes of the write-ahead log of the embedded store; it grows while a process reads an old state',
  sluice_requests_in_flight: 'Requests whose response is not finished, including streams',
  sluice_overloaded: 'Processes that refuse requests because they are overloaded',
  sluice_exports_running: 'Exports that are running now',
  sluice_exports:
    'Exports in the store, by state: queued, running, complete, failed, cancelled; up to a minute old, and the same in all processes',
  sluice_streams_open: 'Open streams',
  sluice_streams_stalled: 'Open streams whose client reads nothing',
  sluice_transcode_seconds_total: 'Seconds in which rows were turned into JSON, CSV or Arrow',
  sluice_socket_wait_seconds_total:
    'Seconds that streams waited until their client took more, added up over all streams, those that wait now included',
} as const;
type Name = keyof typeof HELP;

type Metric = Omit<MetricJson, 'values'> & { readonly values: () => MetricJson['values'] };

/** Buckets from a page in memory to a stream of a few million rows. Seconds. */
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];
const STORE_BUCKETS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** Memory, event loop and garbage collection. They are registered once, however many servers the process has. */
let processRegistry: Registry | null = null;

/** Counts the work of the server for GET /metrics. */
export class Metrics {
  readonly #all: Metric[] = [];
  readonly #byRoute = new Map<string, RouteMetrics>();
  #inFlight = 0;
  #parked = 0;
  readonly #waiting = overlapping(() => performance.now());

  readonly #requests = this.#counter('sluice_requests_total');
  readonly #cut = this.#counter('sluice_answers_cut_total');
  readonly #seconds = this.#histogram('sluice_request_duration_seconds', REQUEST_BUCKETS);
  readonly #rows = this.#counter('sluice_rows_sent_total');
  readonly #bytes = this.#counter('sluice_sent_bytes_total');
  readonly #batches = this.#counter('sluice_store_batches_total').of('', () => ({}));
  readonly #rowsRead = this.#counter('sluice_store_rows_total').of('', () => ({}));
  readonly #retries = this.#counter('sluice_store_retries_total').of('', () => ({}));
  readonly #storeSeconds = this.#histogram('sluice_store_seconds', STORE_BUCKETS);
  readonly #storeFailures = this.#counter('sluice_store_failures_total');

  /** Adds the metrics that are read on demand. To be called once. */
  watch({ openStreams, runningExports, exports, overloaded, transcodedMs, logBytes }: MetricSources): void {
    const ofLog = () => (logBytes ? [{ value: logBytes(), labels: {} }] : []);
    this.#add('sluice_store_log_bytes', { type: 'gauge', aggregator: 'max', values: ofLog });
    this.#read('sluice_requests_in_flight', () => this.#inFlight);
    this.#read('sluice_overloaded', () => Number(overloaded()));
    this.#read('sluice_exports_running', runningExports);
    const byState = () => Object.entries(exports()).map(([state, value]) => ({ value, labels: { state } }));
    this.#add('sluice_exports', { type: 'gauge', aggregator: 'max', values: byState });
    this.#read('sluice_streams_open', openStreams);
    this.#read('sluice_streams_stalled', () => this.#parked);
    this.#read('sluice_transcode_seconds_total', () => transcodedMs() / 1000, 'counter');
    this.#read('sluice_socket_wait_seconds_total', () => this.#waiting(0) / 1000, 'counter');
  }

  /** Counts a request that has arrived. */
  readonly began = (): void => {
    this.#inFlight++;
  };

  readonly finished: Finished = ({ method, notes }, { status, bytes, cut }, ms) => {
    this.#inFlight--;
    const place = placeOf(notes);
    const { seconds, rows, sent } = this.#routeOf(place);
    this.#answersOf(place, methodOf(method), status).value++;
    seconds.observe(ms / 1000);
    if (bytes > 0) {
      sent.value += bytes;
      rows.value += notes.rows;
    }
    if (cut !== null) this.#cutOf(place, endOf(cut)).value++;
  };

  /** Counts a stream that stalls. Call the returned function when the stream continues or ends. */
  readonly parked = (): (() => void) => {
    this.#parked++;
    return () => this.#parked--;
  };

  /** Counts a stream that waits for its client. Call the returned function once, when the wait is over. */
  readonly waits = (): (() => void) => {
    this.#waiting(1);
    return () => void this.#waiting(-1);
  };

  readonly retried = (): void => {
    this.#retries.value++;
  };

  /** The meter of one operation of the store, which takes its duration in milliseconds. */
  storeOperation(operation: string): (ms: number, hasFailed: boolean) => void {
    const seconds = this.#storeSeconds.of(operation, () => ({ operation }));
    const failures = this.#storeFailures.of(operation, () => ({ operation }));
    return (ms, hasFailed) => {
      seconds.observe(ms / 1000);
      if (hasFailed) failures.value++;
    };
  }

  batchRead(rows: number): void {
    this.#batches.value++;
    this.#rowsRead.value += rows;
  }

  /** The name and help of every metric, including the metrics of the process. */
  list(): { readonly name: string; readonly help: string }[] {
    return [...this.#all, ...processMetrics().getMetricsAsArray()];
  }

  async values(): Promise<MetricValues> {
    return [
      ...this.#all.map((one) => ({ ...one, values: one.values() })),
      ...(await processMetrics().getMetricsAsJSON()),
    ];
  }

  #counter(name: Name): Family<Counter> {
    const family = new Family(() => new Counter());
    this.#add(name, { type: 'counter', values: () => family.values(name) });
    return family;
  }

  #histogram(name: Name, bounds: readonly number[]): Family<Histogram> {
    const family = new Family(() => new Histogram(bounds));
    this.#add(name, { type: 'histogram', values: () => family.values(name) });
    return family;
  }

  #read(name: Name, read: () => number, type: 'gauge' | 'counter' = 'gauge'): void {
    this.#add(name, { type, values: () => [{ value: read(), labels: {} }] });
  }

  #add(name: Name, metric: Omit<Metric, 'name' | 'help' | 'aggregator'> & Partial<Metric>): void {
    this.#all.push({ name, help: HELP[name], aggregator: 'sum', ...metric });
  }

  #answersOf(place: Place, method: string, status: number): Counter {
    const labels = () => ({ ...place, method, status: String(status) });
    return this.#requests.of(`${place.route} ${method} ${status}`, labels);
  }

  #cutOf(place: Place, end: string): Counter {
    return this.#cut.of(`${place.route} ${end}`, () => ({ ...place, end }));
  }

  #routeOf(place: Place): RouteMetrics {
    return getOrMake(this.#byRoute, place.route, () => {
      const labels = () => place;
      return {
        seconds: this.#seconds.of(place.route, labels),
        rows: this.#rows.of(place.route, labels),
        sent: this.#bytes.of(place.route, labels),
      };
    });
  }
}

/** Those that each answer of a route changes, found at once. */
interface RouteMetrics {
  readonly seconds: Histogram;
  readonly rows: Counter;
  readonly sent: Counter;
}

function processMetrics(): Registry {
  if (processRegistry === null) {
    processRegistry = new Registry();
    collectDefaultMetrics({ register: processRegistry });
  }
  return processRegistry;
}

/** The labels of a request's route. There are as many as paths of routes. A path belongs to at most one resource. */
type Place = Readonly<Record<'route', string>> & Readonly<Partial<Record<'resource', string>>>;

function placeOf({ route, resource }: Pick<Notes, 'route' | 'resource'>): Place {
  if (route === null) return NONE;
  return resource === null ? { route } : { route, resource };
}

const NONE: Place = { route: 'none' };

const METHODS: ReadonlySet<string> = new Set('GET HEAD POST PUT PATCH DELETE OPTIONS'.split(' '));

/** The label of a method. A client may send any, so all that no route has are one. */
function methodOf(method: string): string {
  return METHODS.has(method) ? method : 'other';
}

/**
 * The values of several processes as one text, combined by each metric's `aggregator`: counts are added up, a value
 * that all processes share is the largest one, other values are averaged.
 */
export function metricsText(values: readonly MetricValues[]): Promise<string> {
  return AggregatorRegistry.aggregate([...values]).metrics();
}

/** GET /metrics: the metrics of all processes of this server, in the text format of Prometheus. */
export function getMetrics(values: () => Promise<readonly MetricValues[]>): Route {
  return {
    method: 'GET',
    path: '/metrics',
    access: 'keyed',
    cost: 'watch',
    right: 'metrics',
    id: 'getMetrics',
    tag: 'Server',
    summary: 'Get metrics',
    description: 'Returns metrics of all processes of this server, in the text format of Prometheus.',
    answers: {
      200: {
        description: 'The current values',
        headers: ['Cache-Control'],
        content: { 'text/plain': { schema: { type: 'string' } } },
      },
    },
    handler: async () => {
      const text = await metricsText(await values());
      const headers = { 'content-type': Registry.PROMETHEUS_CONTENT_TYPE, 'cache-control': 'no-store' };
      return bytes(200, Buffer.from(text), headers);
    },
  };
}
