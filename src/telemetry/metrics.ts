import { AggregatorRegistry, collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Finished } from '../http/respond.ts';
import { endOf } from './ending.ts';

/** What a metric is read from when it is asked for. */
export interface MetricSources {
  /** Streams open now. */
  readonly openStreams: () => number;
  /** Whether requests are refused because there is too much to do. */
  readonly overloaded: () => boolean;
}

/** The values of one process, as prom-client hands them between processes. */
export type MetricValues = object[];

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** From a page out of memory to a stream of a few million rows. Seconds. */
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];
const STORE_BUCKETS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** Media type of the text format of Prometheus. */
export const METRICS_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** What the process itself tells (memory, event loop, garbage collection): once, however many servers it has. */
let processRegistry: Registry | null = null;

/**
 * Counts what the server does, for GET /metrics. What comes with every request is counted in objects that are looked up
 * by one short text: to find them by their labels would cost several times as much.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #byAnswer = new Map<string, { inc(): void }>();
  readonly #byRoute = new Map<string, RouteMetrics>();
  #inFlight = 0;
  #stalled = 0;

  readonly #requests = new Counter({
    name: 'sluice_requests_total',
    help: 'Requests finished, by route, method and status; status 0: the client left before there was an answer',
    labelNames: ['route', 'method', 'status'],
    registers: [this.#registry],
  });
  readonly #cut = new Counter({
    name: 'sluice_answers_cut_total',
    help: 'Answers that were cut, by route and what ended them: client, stalled, store, stop, fault',
    labelNames: ['route', 'end'],
    registers: [this.#registry],
  });
  readonly #seconds = new Histogram({
    name: 'sluice_request_duration_seconds',
    help: 'From the request to the last byte of its answer, by route',
    labelNames: ['route'],
    buckets: REQUEST_BUCKETS,
    registers: [this.#registry],
  });
  readonly #rows = new Counter({
    name: 'sluice_rows_sent_total',
    help: 'Rows in finished answers, by route',
    labelNames: ['route'],
    registers: [this.#registry],
  });
  readonly #bytes = new Counter({
    name: 'sluice_sent_bytes_total',
    help: 'Bytes of the bodies of finished answers, as they travelled, by route',
    labelNames: ['route'],
    registers: [this.#registry],
  });
  readonly #batches = new Counter({
    name: 'sluice_store_batches_total',
    help: 'Batches of rows read from the store',
    registers: [this.#registry],
  });
  readonly #rowsRead = new Counter({
    name: 'sluice_store_rows_total',
    help: 'Rows read from the store, counted batch by batch, also of streams that are still open',
    registers: [this.#registry],
  });
  readonly #retries = new Counter({
    name: 'sluice_store_retries_total',
    help: 'Reads of streams that were asked for again because the store did not answer',
    registers: [this.#registry],
  });
  readonly #storeSeconds = new Histogram({
    name: 'sluice_store_seconds',
    help: 'How long the store took to answer, by operation: read, get, count, split, insert, change',
    labelNames: ['operation'],
    buckets: STORE_BUCKETS,
    registers: [this.#registry],
  });
  readonly #storeFailures = new Counter({
    name: 'sluice_store_failures_total',
    help: 'What the store did not do, by operation; not what its caller gave up',
    labelNames: ['operation'],
    registers: [this.#registry],
  });

  constructor({ openStreams, overloaded }: MetricSources) {
    this.#gauge(
      'sluice_requests_in_flight',
      'Requests whose answer is not out yet, streams included',
      () => this.#inFlight,
    );
    this.#gauge('sluice_overloaded', 'Processes that refuse requests because they have too much to do', () =>
      Number(overloaded()),
    );
    this.#gauge('sluice_streams_open', 'Open streams', openStreams);
    this.#gauge('sluice_streams_stalled', 'Open streams whose reader takes nothing', () => this.#stalled);
  }

  /** A request has come. */
  began(): void {
    this.#inFlight++;
  }

  readonly finished: Finished = ({ method, notes }, { status, bytes, cut }, ms) => {
    this.#inFlight--;
    const route = notes.route ?? 'none';
    const name = METHODS.has(method) ? method : 'other';
    this.#answersOf(route, name, status).inc();
    const { seconds, rows, sent } = this.#routeOf(route);
    seconds.observe(ms / 1000);
    if (bytes > 0) {
      sent.inc(bytes);
      if (notes.rows > 0) rows.inc(notes.rows);
    }
    if (cut !== null) this.#cut.inc({ route, end: endOf(cut) });
  };

  /** A stream stalls; what is returned says that it goes on, or has ended. */
  readonly stalled = (): (() => void) => {
    this.#stalled++;
    return () => this.#stalled--;
  };

  readonly retried = (): void => this.#retries.inc();

  /** What is timed as `operation` of the store: told its seconds, and whether it failed. */
  storeOperation(operation: string): { done(ms: number): void; failed(ms: number): void } {
    const seconds = this.#storeSeconds.labels(operation);
    const failures = this.#storeFailures.labels(operation);
    return {
      done: (ms) => seconds.observe(ms / 1000),
      failed: (ms) => {
        seconds.observe(ms / 1000);
        failures.inc();
      },
    };
  }

  batchRead(rows: number): void {
    this.#batches.inc();
    this.#rowsRead.inc(rows);
  }

  /** The name and help of every metric, those of the process included. */
  list(): { readonly name: string; readonly help: string }[] {
    return [this.#registry, processMetrics()].flatMap((registry) => registry.getMetricsAsArray());
  }

  async values(): Promise<MetricValues> {
    const all = await Promise.all([this.#registry, processMetrics()].map((one) => one.getMetricsAsJSON()));
    return all.flat();
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

  #answersOf(route: string, method: string, status: number): { inc(): void } {
    const key = `${route} ${method} ${status}`;
    let counter = this.#byAnswer.get(key);
    if (!counter) this.#byAnswer.set(key, (counter = this.#requests.labels(route, method, String(status))));
    return counter;
  }

  #routeOf(route: string): RouteMetrics {
    let metrics = this.#byRoute.get(route);
    if (!metrics) {
      metrics = {
        seconds: this.#seconds.labels(route),
        rows: this.#rows.labels(route),
        sent: this.#bytes.labels(route),
      };
      this.#byRoute.set(route, metrics);
    }
    return metrics;
  }
}

interface RouteMetrics {
  readonly seconds: { observe(value: number): void };
  readonly rows: { inc(value: number): void };
  readonly sent: { inc(value: number): void };
}

/** The values of several processes as one text: counts are added up, what cannot be is averaged. */
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
