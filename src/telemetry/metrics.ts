import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client';
import type { Ending, Notes, Request } from '../engine/edge.ts';
import { getOrMake } from '../base/get-or-make.ts';
import { bytes } from '../http/reply.ts';
import type { Route } from '../http/route.ts';
import { Counter, createFamily, Histogram, overlapping, type MetricJson } from './counters.ts';
import { OF_EDITIONS, type EditionValues } from './edition-metrics.ts';
import { endOf } from './request-log.ts';

interface MetricSources {
  readonly openStreams: () => number;
  readonly runningExports: () => number;
  /** The number of exports by state. All processes on one store report the same, but for a few seconds. */
  readonly exports: () => Readonly<Record<string, number>>;
  /** The values of each resource that has editions. Values of records are the same in all processes, but for a few seconds. */
  readonly editions: () => ReadonlyMap<string, EditionValues>;
  readonly overloaded: () => boolean;
  /** The time in which rows were transcoded, in milliseconds. */
  readonly transcodedMs: () => number;
  /** The faults of files of settings as they were read last, by the name of the setting. Null: there is no such file. */
  readonly settingsFaults: () => Readonly<Record<string, number | null>>;
  /** The size of the embedded store's write-ahead log. */
  readonly logBytes?: (() => number) | undefined;
}

/** The values of one process, in the form that prom-client passes between processes. */
export type MetricValues = object[];

const HELP = {
  sluice_requests_total:
    'Finished requests, by route, resource, method and status; status 0: the client disconnected before the response',
  sluice_answers_cut_total:
    'Responses cut before their end, by route, resource and end: client, stalled, key, operator, store, stop, fault',
  sluice_request_duration_seconds:
    'Seconds from the request to the last byte of its response, by route and resource',
  sluice_rows_sent_total: 'Rows in finished responses, by route and resource',
  sluice_sent_bytes_total: 'Body bytes of finished responses after compression, by route and resource',
  sluice_store_batches_total: 'Batches of rows read from the store',
  sluice_store_rows_total: 'Rows read from the store, counted per batch, including those of open streams',
  sluice_store_retries_total: 'Reads of streams that were repeated because the store did not respond',
  sluice_store_seconds:
    'Seconds that the store took to respond, by operation: read, count, split, insert, change, values, snapshot',
  sluice_store_failures_total:
    'Failed operations of the store, by operation; operations that the server cancelled are not counted',
  sluice_store_log_bytes:
    'Bytes of the write-ahead log of the embedded store; it grows while another process reads an old state of the file',
  sluice_requests_in_flight: 'Requests whose response is not finished, including streams',
  sluice_overloaded: 'Processes that refuse requests because they are overloaded',
  sluice_settings_faults:
    'Faults in a file of keys or resources as it was read last, by setting; what was read before stays in force',
  sluice_exports_running: 'Exports that are running now',
  sluice_exports:
    'Exports in the store, by state: queued, running, complete, failed, cancelled; up to a minute old, and the same in all processes',
  sluice_edition_age_seconds: 'Seconds since the rows of the newest edition were so, by resource',
  sluice_edition_sequence: 'The number of the newest edition, by resource',
  sluice_edition_rows: 'Rows of the newest edition, by resource',
  sluice_edition_attempt_seconds: 'Seconds that the last attempt at an edition took, by resource',
  sluice_edition_failures_total: 'Attempts at an edition that failed, by resource',
  sluice_edition_chunks_read_total: 'Chunks of editions that were read from the store, by resource',
  sluice_edition_chunks_stored_total: 'Chunks of editions of which files were stored, by resource',
  sluice_edition_walk_rows: 'Rows that a walk over a whole resource for an edition has read, by resource',
  sluice_edition_walk_expected_rows:
    'Rows of the resource when that walk began, by the estimate of the store, by resource',
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

/** The metrics of one server in the order in which they are shown. */
class MetricList {
  readonly #all: Metric[] = [];

  add(name: Name, metric: Omit<Metric, 'name' | 'help' | 'aggregator'> & Partial<Metric>): void {
    this.#all.push({ name, help: HELP[name], aggregator: 'sum', ...metric });
  }

  /** A value that is read on demand. */
  read(name: Name, value: () => number, type: 'gauge' | 'counter' = 'gauge'): void {
    this.add(name, { type, values: () => [{ value: value(), labels: {} }] });
  }

  counters(name: Name) {
    return this.#family(name, 'counter', () => new Counter());
  }

  counter(name: Name): Counter {
    return this.counters(name)('', () => ({}));
  }

  histograms(name: Name, bounds: readonly number[]) {
    return this.#family(name, 'histogram', () => new Histogram(bounds));
  }

  values(): MetricJson[] {
    return this.#all.map((one) => ({ ...one, values: one.values() }));
  }

  #family<Child extends Counter | Histogram>(name: Name, type: 'counter' | 'histogram', make: () => Child) {
    const made = createFamily(make);
    this.add(name, { type, values: () => made.values(name) });
    return made.of;
  }
}

/** What each answer of a route changes. */
interface RouteMetrics {
  readonly seconds: Histogram;
  readonly rows: Counter;
  readonly sent: Counter;
}

/** Counts the work of the server for GET /metrics. */
export class Metrics {
  readonly #list = new MetricList();
  readonly #requests = this.#list.counters('sluice_requests_total');
  readonly #cuts = this.#list.counters('sluice_answers_cut_total');
  readonly #seconds = this.#list.histograms('sluice_request_duration_seconds', REQUEST_BUCKETS);
  readonly #rowsSent = this.#list.counters('sluice_rows_sent_total');
  readonly #bytesSent = this.#list.counters('sluice_sent_bytes_total');
  readonly #batches = this.#list.counter('sluice_store_batches_total');
  readonly #rowsRead = this.#list.counter('sluice_store_rows_total');
  readonly #retries = this.#list.counter('sluice_store_retries_total');
  readonly #storeSeconds = this.#list.histograms('sluice_store_seconds', STORE_BUCKETS);
  readonly #storeFailures = this.#list.counters('sluice_store_failures_total');
  readonly #byRoute = new Map<string, RouteMetrics>();
  readonly #waiting = overlapping(() => performance.now());
  #begun = 0;
  #inFlight = 0;
  #parked = 0;

  /** Adds the metrics that are read on demand. To be called once. */
  watch(sources: MetricSources): void {
    const { openStreams, runningExports, exports, overloaded, transcodedMs, settingsFaults, logBytes } =
      sources;
    const list = this.#list;
    processMetrics(); // from now on, so that the first scrape has a delay of the event loop, and all CPU
    const ofLog = () => (logBytes ? [{ value: logBytes(), labels: {} }] : []);
    const byState = () => Object.entries(exports()).map(([state, value]) => ({ value, labels: { state } }));
    list.add('sluice_store_log_bytes', { type: 'gauge', aggregator: 'max', values: ofLog });
    list.read('sluice_requests_in_flight', () => this.#inFlight);
    list.read('sluice_overloaded', () => Number(overloaded()));
    const bySetting = () =>
      Object.entries(settingsFaults()).flatMap(([setting, value]) =>
        value === null ? [] : [{ value, labels: { setting } }],
      );
    list.add('sluice_settings_faults', { type: 'gauge', aggregator: 'max', values: bySetting });
    list.read('sluice_exports_running', runningExports);
    list.add('sluice_exports', { type: 'gauge', aggregator: 'max', values: byState });
    this.#watchEditions(sources);
    list.read('sluice_streams_open', openStreams);
    list.read('sluice_streams_stalled', () => this.#parked);
    list.read('sluice_transcode_seconds_total', () => transcodedMs() / 1000, 'counter');
    list.read('sluice_socket_wait_seconds_total', () => this.#waiting(0) / 1000, 'counter');
  }

  #watchEditions({ editions }: Pick<MetricSources, 'editions'>): void {
    for (const [of, [name, type, aggregator]] of Object.entries(OF_EDITIONS)) {
      const values = () =>
        [...editions()].flatMap(([resource, all]) => {
          const value = all[of as keyof EditionValues];
          return value === undefined ? [] : [{ value, labels: { resource } }];
        });
      this.#list.add(name, { type, aggregator, values });
    }
  }

  /** Requests whose response is not finished, streams included. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** The number of requests that have begun. */
  get begun(): number {
    return this.#begun;
  }

  began(): void {
    this.#begun++;
    this.#inFlight++;
  }

  /** See Observer.finished. */
  finished({ method, notes }: Request, { status, bytes, cut }: Ending, ms: number): void {
    this.#inFlight--;
    const place = placeOf(notes);
    const own = this.#ofRoute(place);
    const label = methodOf(method);
    const labels = () => ({ ...place, method: label, status: String(status) });
    this.#requests(`${place.route} ${label} ${status}`, labels).value++;
    own.seconds.observe(ms / 1000);
    if (bytes > 0) {
      own.sent.value += bytes;
      own.rows.value += notes.rows;
    }
    if (cut === null) return;
    const end = endOf(cut);
    this.#cuts(`${place.route} ${end}`, () => ({ ...place, end })).value++;
  }

  /** Counts a stream that stalls. Call the returned function when the stream continues or ends. */
  parked(): () => void {
    this.#parked++;
    return () => this.#parked--;
  }

  /** Counts a stream that waits for its client. Call the returned function once, when the wait is over. */
  waits(): () => void {
    this.#waiting(1);
    return () => void this.#waiting(-1);
  }

  retried(): void {
    this.#retries.value++;
  }

  /** The meter of one operation of the store, which takes its duration in milliseconds. */
  storeOperation(operation: string): (ms: number, hasFailed: boolean) => void {
    const labels = () => ({ operation });
    const took = this.#storeSeconds(operation, labels);
    const failures = this.#storeFailures(operation, labels);
    return (ms, hasFailed) => {
      took.observe(ms / 1000);
      if (hasFailed) failures.value++;
    };
  }

  batchRead(rows: number): void {
    this.#batches.value++;
    this.#rowsRead.value += rows;
  }

  /** The values of all metrics, those of the process included. */
  async values(): Promise<MetricValues> {
    return [...this.#list.values(), ...(await processMetrics().getMetricsAsJSON())];
  }

  /** Found at once for each answer. */
  #ofRoute(place: Place): RouteMetrics {
    return getOrMake(this.#byRoute, place.route, () => ({
      seconds: this.#seconds(place.route, () => place),
      rows: this.#rowsSent(place.route, () => place),
      sent: this.#bytesSent(place.route, () => place),
    }));
  }
}

/** Memory, event loop and garbage collection. They are registered once, however many servers the process has. */
let processRegistry: Registry | null = null;

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

/** The methods that routes have. */
export const METHODS: ReadonlySet<string> = new Set('GET HEAD POST PUT PATCH DELETE OPTIONS'.split(' '));

/** The label of a method. A client may send any, so all that no route has are one. */
function methodOf(method: string): string {
  return METHODS.has(method) ? method : 'other';
}

/** Joins processes by each metric's `aggregator`: counts are added, a shared value is the largest, others averaged. */
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
