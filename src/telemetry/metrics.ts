import { AggregatorRegistry, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Finished } from '../http/respond.ts';
import { methodOf, placeOf, type Place } from './place.ts';
import { CounterFamily, HistogramFamily, type Counter, type Histogram } from './counters.ts';
import { endOf } from './end-reason.ts';

/** The sources of the metrics that are read on demand. */
export interface MetricSources {
  /** The number of open streams. */
  readonly openStreams: () => number;
  /** The number of exports in progress. */
  readonly runningExports: () => number;
  /** The number of exports by state. All processes on one store report the same, but for a few seconds. */
  readonly exports: () => Readonly<Record<string, number>>;
  /** Whether the server refuses requests because it is overloaded. */
  readonly overloaded: () => boolean;
}

/** The values of one process, in the form that prom-client passes between processes. */
export type MetricValues = object[];

/** Buckets from a page in memory to a stream of a few million rows. Seconds. */
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];
const STORE_BUCKETS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** The media type of the text format of Prometheus. */
export const METRICS_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** Memory, event loop and garbage collection. They are registered once, however many servers the process has. */
let processRegistry: Registry | null = null;

/** Counts the work of the server for GET /metrics. Short strings look up the children: see counters.ts. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #byAnswer = new Map<string, Counter>();
  readonly #byRoute = new Map<string, RouteMetrics>();
  readonly #byCut = new Map<string, Counter>();
  readonly #byOperation = new Map<string, OperationMetrics>();
  #inFlight = 0;
  #parked = 0;

  readonly #requests = new CounterFamily({
    name: 'sluice_requests_total',
    help: 'Finished requests, by route, resource, method and status; status 0: the client disconnected before the response',
  });
  readonly #cut = new CounterFamily({
    name: 'sluice_answers_cut_total',
    help: 'Responses cut before their end, by route, resource and cause: client, stalled, store, stop, fault',
  });
  readonly #seconds = new HistogramFamily(
    {
      name: 'sluice_request_duration_seconds',
      help: 'Seconds from the request to the last byte of its response, by route and resource',
    },
    REQUEST_BUCKETS,
  );
  readonly #rows = new CounterFamily({
    name: 'sluice_rows_sent_total',
    help: 'Rows in finished responses, by route and resource',
  });
  readonly #bytes = new CounterFamily({
    name: 'sluice_sent_bytes_total',
    help: 'Body bytes of finished responses after compression, by route and resource',
  });
  readonly #batches = new CounterFamily({
    name: 'sluice_store_batches_total',
    help: 'Batches of rows read from the store',
  });
  readonly #rowsRead = new CounterFamily({
    name: 'sluice_store_rows_total',
    help: 'Rows read from the store, counted per batch, including those of open streams',
  });
  readonly #retries = new CounterFamily({
    name: 'sluice_store_retries_total',
    help: 'Reads of streams that were repeated because the store did not respond',
  });
  readonly #storeSeconds = new HistogramFamily(
    {
      name: 'sluice_store_seconds',
      help: 'Seconds that the store took to respond, by operation: read, get, count, split, insert, change, holds, values',
    },
    STORE_BUCKETS,
  );
  readonly #storeFailures = new CounterFamily({
    name: 'sluice_store_failures_total',
    help: 'Failed operations of the store, by operation; operations that the server cancelled are not counted',
  });

  readonly #all = [
    this.#requests,
    this.#cut,
    this.#seconds,
    this.#rows,
    this.#bytes,
    this.#batches,
    this.#rowsRead,
    this.#retries,
    this.#storeSeconds,
    this.#storeFailures,
  ];
  readonly #batchesRead = this.#batches.labels();
  readonly #rowsOfBatches = this.#rowsRead.labels();
  readonly #retriesMade = this.#retries.labels();

  /** Adds the metrics that are read on demand. To be called once. */
  watch({ openStreams, runningExports, exports, overloaded }: MetricSources): void {
    this.#gauge(
      'sluice_requests_in_flight',
      'Requests whose response is not finished, including streams',
      () => this.#inFlight,
    );
    this.#gauge('sluice_overloaded', 'Processes that refuse requests because they are overloaded', () =>
      Number(overloaded()),
    );
    this.#gauge('sluice_exports_running', 'Exports that are running now', runningExports);
    new Gauge({
      name: 'sluice_exports',
      help: 'Exports in the store, by state: queued, running, complete, failed, cancelled; up to a minute old, and the same in all processes',
      labelNames: ['state'],
      aggregator: 'max',
      registers: [this.#registry],
      collect() {
        for (const [state, count] of Object.entries(exports())) this.set({ state }, count);
      },
    });
    this.#gauge('sluice_streams_open', 'Open streams', openStreams);
    this.#gauge('sluice_streams_stalled', 'Open streams whose client reads nothing', () => this.#parked);
  }

  /** Counts a request that has arrived. */
  began(): void {
    this.#inFlight++;
  }

  readonly finished: Finished = ({ method, notes }, { status, bytes, cut }, ms) => {
    this.#inFlight--;
    const place = placeOf(notes);
    this.#answersOf(place, methodOf(method), status).value++;
    const { seconds, rows, sent } = this.#routeOf(place);
    seconds.observe(ms / 1000);
    if (bytes > 0) {
      sent.value += bytes;
      rows.value += notes.rows;
    }
    if (cut !== null) this.#cutOf(place, endOf(cut)).value++;
  };

  /** Counts a stream that stalls. The returned function is to be called when the stream continues or ends. */
  readonly parked = (): (() => void) => {
    this.#parked++;
    return () => this.#parked--;
  };

  readonly retried = (): void => {
    this.#retriesMade.value++;
  };

  /** The meter of one operation of the store. `done` and `failed` take the duration in milliseconds. */
  storeOperation(operation: string): { done(ms: number): void; failed(ms: number): void } {
    const { seconds, failures } = entry(this.#byOperation, operation, () => ({
      seconds: this.#storeSeconds.labels({ operation }),
      failures: this.#storeFailures.labels({ operation }),
    }));
    return {
      done: (ms) => seconds.observe(ms / 1000),
      failed: (ms) => {
        seconds.observe(ms / 1000);
        failures.value++;
      },
    };
  }

  batchRead(rows: number): void {
    this.#batchesRead.value++;
    this.#rowsOfBatches.value += rows;
  }

  /** The name and help of every metric, including the metrics of the process. */
  list(): { readonly name: string; readonly help: string }[] {
    const others = [this.#registry, processMetrics()].flatMap((registry) => registry.getMetricsAsArray());
    return [...this.#all, ...others];
  }

  async values(): Promise<MetricValues> {
    const others = await Promise.all([this.#registry, processMetrics()].map((one) => one.getMetricsAsJSON()));
    return [...this.#all.map((metric) => metric.json()), ...others.flat()];
  }

  #gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.set(read());
      },
    });
  }

  #answersOf(place: Place, method: string, status: number): Counter {
    const make = () => this.#requests.labels({ ...place, method, status: String(status) });
    return entry(this.#byAnswer, `${place.route} ${method} ${status}`, make);
  }

  #cutOf(place: Place, end: string): Counter {
    return entry(this.#byCut, `${place.route} ${end}`, () => this.#cut.labels({ ...place, end }));
  }

  #routeOf(place: Place): RouteMetrics {
    return entry(this.#byRoute, place.route, () => ({
      seconds: this.#seconds.labels(place),
      rows: this.#rows.labels(place),
      sent: this.#bytes.labels(place),
    }));
  }
}

interface RouteMetrics {
  readonly seconds: Histogram;
  readonly rows: Counter;
  readonly sent: Counter;
}

interface OperationMetrics {
  readonly seconds: Histogram;
  readonly failures: Counter;
}

function entry<V>(map: Map<string, V>, key: string, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

/**
 * The values of several processes as one text, combined by each metric's `aggregator`: counts are added up, a value
 * that all processes share is the largest one, other values are averaged.
 */
export function metricsText(values: readonly MetricValues[]): Promise<string> {
  return AggregatorRegistry.aggregate([...values]).metrics();
}

function processMetrics(): Registry {
  if (processRegistry === null) {
    processRegistry = new Registry();
    collectDefaultMetrics({ register: processRegistry });
  }
  return processRegistry;
}
