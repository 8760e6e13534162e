import { setTimeout as sleep } from 'node:timers/promises';
import { openAccess } from '../access/open.ts';
import type { OverloadProbe } from '../access/overload.ts';
import { rightsCheck, type CheckScope } from '../access/rights-check.ts';
import { createApp } from './app.ts';
import type { Config } from '../settings/config.ts';
import { urlOf } from '../engine/address.ts';
import { freePort } from '../engine/cannot-listen.ts';
import type { Serve } from '../engine/edge.ts';
import { createEngine } from '../engine/engine.ts';
import { StoppedError } from '../engine/stall-timer.ts';
import { openEditions } from './open-editions.ts';
import { openExports, servesExports } from './open-exports.ts';
import { SettingsReader } from './read-again.ts';
import { SpareMemory } from './spare-memory.ts';
import { exportSources } from '../exports/order.ts';
import { OpenStreams } from '../http/open-streams.ts';
import { requestIdOf } from '../http/request-id.ts';
import type { Route } from '../http/route.ts';
import { fillWithSample, openDeclared, openTimedStore, openUsers } from './open-rows.ts';
import type { OpenResource } from '../resources/open.ts';
import { checkScope } from '../resources/query/scope.ts';
import type { ServedResources } from '../resources/served.ts';
import type { Transcoder } from '../rows/rows.ts';
import { createTranscoder } from '../rows/transcoder.ts';
import { ReadTurns } from '../store/turns/read-turns.ts';
import { streamReader, type StreamedRows } from '../store/turns/readers.ts';
import { RETRY_MS } from '../store/turns/retrying.ts';
import { Slots } from '../store/turns/slots.ts';
import type { Store } from '../store/store.ts';
import type { Logger } from '../telemetry/log.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { openTracer } from '../telemetry/opentelemetry.ts';
import { beginRequestSpan, beginWaitSpan, endRequestSpan } from '../telemetry/request-spans.ts';
import { auditLog, requestLog } from '../telemetry/request-log.ts';
import { checkUsers, type Users } from '../users/scope.ts';
import { USERS } from '../users/row.ts';
import type { Tracer } from '../base/span.ts';
import { VERSION } from '../base/version.ts';

/** The largest request body, in bytes. */
const BODY_LIMIT = 1024 * 1024;
/** Proxies close what is silent for a minute. Milliseconds. */
const HEARTBEAT_MS = 15_000;
/** Longer than a client about 10,000 km away needs to send its next request. */
const QUIET_MS = 1000;

export interface ServerOptions {
  /** How long a stream waits for a store that is unavailable. Milliseconds. */
  readonly retryMs?: number;
  /** How long an export stays reserved for a worker that has stopped renewing its lease. Milliseconds. */
  readonly leaseMs?: number;
  /** See EngineOptions. */
  readonly quietMs?: number;
  /** See AnswerOptions in resources/changes/answer.ts. */
  readonly heartbeatMs?: number;
  /** Listens on a port that other processes share in the same way. */
  readonly sharedPort?: boolean;
  /** What the overload guard measures. */
  readonly overloadProbe?: OverloadProbe;
  /** How often, and how, memory is given back once many streams have ended. */
  readonly spareMemory?: Pick<ConstructorParameters<typeof SpareMemory>[0], 'collect' | 'lookMs'>;
  /** Reads the settings again. Absent: they do not change. Throws Faults. */
  readonly readConfig?: () => Config;
  /** Wraps the store before any other code uses it. */
  readonly tapStore?: (store: Store) => Store;
  /** Wraps the application before the engine calls it. */
  readonly tap?: (serve: Serve, routes: () => readonly Route[]) => Serve;
  /** Asks this process and its siblings. `own` answers for this one. By default there are no others. */
  readonly gather?: Gather;
}

type Gather = <Question, Answer>(
  topic: string,
  own: (question: Question) => Promise<Answer>,
) => (question: Question) => Promise<readonly Answer[]>;

const ALONE: Gather = (_topic, own) => async (question) => [await own(question)];

/** A server that listens. */
export type Server = Awaited<ReturnType<typeof startServer>>;

/**
 * Opens the parts in order and listens. Each part adds to `closes` what closes it again, so they close in the reverse
 * order. Rejects when the address is taken or the store refuses permanently, and then closes what it opened.
 */
export async function startServer(config: Config, log: Logger, options: ServerOptions = {}) {
  const { retryMs = RETRY_MS, leaseMs, sharedPort = false } = options;
  const closes = new Closes();
  if (!sharedPort) await freePort(config.HOST, config.PORT);
  try {
    const slots = new Slots();
    const metrics = new Metrics();
    const tracer = openTracer(config, log);
    closes.push(() => tracer?.close());
    const isTraced = tracer !== null;
    const store = await openTimedStore({ ...options, config, log, slots, metrics, isTraced });
    closes.push(() => store.close());
    await fillWithSample(store, config, log);

    const users = await openUsers(store, config);
    const transcoder = createTranscoder(slots);
    const retry = { retryMs, onRetry: () => metrics.retried() };
    const turns = new ReadTurns();
    const streamsOf = (rows: StreamedRows) => streamReader(rows, turns, retry);
    const resources = await openDeclared(store, { streamsOf, slots }, config, log);
    const checks = () => checksOf(resources.now, users);
    const check = rightsCheck(checks, (name) => resources.mayCome(name));
    const access = await openAccess(config, log, check, options.overloadProbe);
    closes.push(() => access.close());
    const sources = () => exportSources(resources.now);
    const begun = () => metrics.begun;
    const exports = (await servesExports(store, config, log))
      ? await openExports(config, { store, sources, transcoder, log, leaseMs, tracer, begun })
      : null;
    closes.push(() => exports?.close());
    const editions = await openEditions(config, { store, resources, transcoder, log, leaseMs });
    closes.push(() => editions?.close());

    metrics.watch({
      openStreams: () => access.streams.open,
      runningExports: () => exports?.exporter.running ?? 0,
      exports: () => exports?.exporter.counts ?? {},
      editions: () => editions?.meter.values(Date.now()) ?? new Map(),
      overloaded: () => access.guard.overloaded,
      transcodedMs: () => transcoder.busyMs(),
      settingsFaults: () => ({
        API_KEYS_FILE: access.keysFaults(),
        RESOURCES_FILE: config.RESOURCES_FILE === undefined ? null : resources.faults.length,
      }),
      logBytes: store.size && (() => store.size?.() ?? 0),
    });
    const load = { openStreams: () => access.streams.open, inFlight: () => metrics.inFlight };
    const spare = new SpareMemory({ ...load, ...options.spareMemory, log });
    closes.push(() => spare.close());
    const parts = { store, metrics, tracer, users, transcoder, resources, access, exports, editions, spare };
    const { serve, routes } = appOf(parts, config, log, options, () => closes.isDraining);
    const { engine, warning } = createEngine(config.HTTP_ENGINE, {
      serve: options.tap?.(serve, routes) ?? serve,
      bodyLimit: BODY_LIMIT,
      stallTimeoutMs: config.STALL_TIMEOUT,
      quietMs: options.quietMs ?? QUIET_MS,
      keepAliveMs: config.KEEP_ALIVE,
      cacheDirectory: config.cacheDirectory,
      sharedPort,
      onError: (err, request) =>
        log.error(
          { err, path: request?.path, requestId: request && requestIdOf(request) },
          'error in the HTTP engine',
        ),
    });
    if (warning !== null) log.warn(warning);
    const port = await engine.listen(config.HOST, config.PORT);
    closes.push(() => engine.stop(config.STREAM_GRACE)); // running requests finish or are cut while all else works
    closes.push(() => exports?.jobs.ends.close()); // who waits for an export gets what is known
    closes.push(() => resources.stop(new StoppedError())); // their followers end first
    resources.follow(() => void access.reloadKeys());
    access.guard.start();
    const url = urlOf(config.HOST, port);
    log.info({ url, engine: engine.name, store: store.name }, 'listening');

    const settings = new SettingsReader(config, log, {
      read: options.readConfig ?? (() => config),
      takeOver: (next) => {
        access.limit(next);
        exports?.limit(next.EXPORT_LIMIT);
      },
    });
    return {
      url,
      engine: engine.name,
      store,
      slots,
      /**
       * Stops in order. /readyz reports the stop for DRAIN_DELAY. Then the server accepts no new requests, running ones
       * finish or are cut after STREAM_GRACE, exports return to the queue, and the store closes.
       */
      close: () => closes.drain(config.DRAIN_DELAY),
      /**
       * Reads settings, resources and keys again, the latter two as the server also does by itself. Resolves with whether
       * all are without faults.
       */
      reload: async () => {
        const isRight = settings.again();
        return (await resources.reload()) && (await access.reloadKeys()) && isRight;
      },
    };
  } catch (error) {
    await closes.all();
    throw error;
  }
}

/** What closes the parts of a server again, in the order in which they were opened. */
class Closes {
  readonly #closes: (() => void | Promise<void>)[] = [];
  #draining: Promise<void> | null = null;

  get isDraining(): boolean {
    return this.#draining !== null;
  }

  push(close: () => void | Promise<void>): void {
    this.#closes.push(close);
  }

  /** Closes all parts, in the reverse order. */
  async all(): Promise<void> {
    for (const close of this.#closes.toReversed()) await close();
  }

  /** Closes all parts after a delay, once. */
  drain(delayMs: number): Promise<void> {
    return (this.#draining ??= sleep(delayMs).then(() => this.all()));
  }
}

/** What says of a scope whether a resource, or the users, can be read by it. By their names. */
function checksOf(resources: readonly OpenResource[], users: Users | null): ReadonlyMap<string, CheckScope> {
  const checks = new Map<string, CheckScope>();
  for (const { resource } of resources) checks.set(resource.name, (scope) => checkScope(resource, scope));
  if (users) checks.set(USERS.name, (scope) => checkUsers(users, scope));
  return checks;
}

interface Parts {
  readonly store: Store;
  readonly metrics: Metrics;
  /** null: no traces are sent. */
  readonly tracer: Tracer | null;
  readonly users: Users | null;
  readonly transcoder: Transcoder;
  readonly resources: ServedResources;
  readonly access: Awaited<ReturnType<typeof openAccess>>;
  readonly exports: Awaited<ReturnType<typeof openExports>> | null;
  readonly editions: Awaited<ReturnType<typeof openEditions>>;
  readonly spare: SpareMemory;
}

/** The application over the opened parts. */
function appOf(
  { store, metrics, tracer, users, transcoder, resources, access, exports, editions, spare }: Parts,
  config: Config,
  log: Logger,
  { heartbeatMs = HEARTBEAT_MS, gather = ALONE }: ServerOptions,
  isDraining: () => boolean,
) {
  const logged = requestLog(log);
  const audited = config.needsKeys ? auditLog(log) : null;
  const streams = new OpenStreams();
  const gatherMetrics = gather('metrics', () => metrics.values());
  const reading = {
    transcoder,
    limits: { maxLimit: config.MAX_LIMIT, maxOffset: config.MAX_OFFSET },
    cacheControl: config.CACHE_CONTROL,
    parked: () => metrics.parked(),
    heartbeatMs,
    begun: () => metrics.begun,
  };
  return createApp({
    resources: { ...reading, served: resources },
    users: users && { ...reading, users, now: Date.now },
    exports,
    editions: editions?.makers ?? null,
    health: { store, files: exports?.files ?? {}, isDraining, faults: () => resources.faults, log },
    corsOrigin: config.CORS_ORIGIN,
    admissions: access.admissions,
    readMount: access.readMount,
    observer: {
      began: () => metrics.began(),
      routed: (request) => {
        spare.routed(request);
        if (tracer) beginRequestSpan(tracer, request);
      },
      waits: (request) => {
        const over = metrics.waits();
        const endSpan = beginWaitSpan(request);
        if (endSpan === null) return over;
        return () => {
          over();
          endSpan();
        };
      },
      finished: (request, ending, ms) => {
        metrics.finished(request, ending, ms);
        endRequestSpan(request, ending);
        logged(request, ending, ms);
        audited?.(request, ending, ms);
      },
    },
    document: { version: VERSION, withKeys: config.needsKeys, limited: config.RATE_LIMIT !== null },
    metrics: () => gatherMetrics(null),
    streams,
    allStreams: { ...acrossProcesses(streams, gather), log },
  });
}

/** The streams of this process and its siblings. Only one of them sends the stream of an id. */
function acrossProcesses(streams: OpenStreams, gather: Gather) {
  const list = gather('streams', () => Promise.resolve(streams.list()));
  const cut = gather('cut', (id: string) => Promise.resolve(streams.cut(id)));
  return {
    list: () => list(null),
    cut: async (id: string) => (await cut(id)).find((one) => one !== null) ?? null,
  };
}
