import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApp } from './app.ts';
import type { Config } from './config.ts';
import { openExports, type Exports } from './exports/open.ts';
import { exportSources } from './exports/source.ts';
import { VERSION } from './version.ts';
import { createEngine } from './engine/engine.ts';
import type { Serve } from './engine/edge.ts';
import { StoppedError } from './engine/stall-timer.ts';
import type { Route } from './http/route.ts';
import { requestIdOf } from './http/request-id.ts';
import { openAccess, type Access } from './access/open.ts';
import type { OverloadProbe } from './access/overload.ts';
import type { Transcoder } from './rows/rows.ts';
import { fillWithSample, openDeclared, openTimedStore } from './open-rows.ts';
import type { OpenResource } from './resources/open.ts';
import { createTranscoder } from './rows/transcoder.ts';
import { createReaders, type StreamReader } from './store/readers.ts';
import { RETRY_MS } from './store/retrying-reader.ts';
import { Slots } from './store/slots.ts';
import type { RowStore, Store } from './store/store.ts';
import type { Logger } from './telemetry/log.ts';
import { Metrics, type MetricValues } from './telemetry/metrics.ts';
import { auditLog } from './telemetry/audit.ts';
import { requestLog } from './telemetry/request-log.ts';
import { openGrants, watchKeys } from './open-keys.ts';

/** The largest request body, in bytes. */
const BODY_LIMIT = 1024 * 1024;
/** Longer than a client about 10,000 km away needs to send its next request. */
const QUIET_MS = 1000;
export interface Server {
  /** The URL it listens on: `http://127.0.0.1:3000`. */
  readonly url: string;
  readonly engine: string;
  readonly store: Store;
  /** The batches being read; 0 when no read is in progress. */
  readonly slots: Slots;
  /**
   * Stops in order. /readyz reports the stop for DRAIN_DELAY. Then the server accepts no new requests, running ones
   * finish or are cut after STREAM_GRACE, exports return to the queue, and the store closes.
   */
  close(): Promise<void>;
  /** Reads API_KEYS_FILE again, as it also is when it changes. Resolves with whether its keys are now valid. */
  reloadKeys(): Promise<boolean>;
}

export interface ServerOptions {
  /** How long a stream waits for a store that is unavailable. Milliseconds; 30 s by default. */
  readonly retryMs?: number;
  /**
   * Called once when this process can never use its store again. The process must then end at once, without closing
   * the server.
   */
  readonly onStoreLost?: (error: Error) => void;
  /**
   * How long an export stays reserved for a worker that has stopped renewing its lease. Milliseconds; 10 s by
   * default.
   */
  readonly leaseMs?: number;
  /** See EngineOptions. 1 s by default. */
  readonly quietMs?: number;
  /** See the options of FeedRun. */
  readonly heartbeatMs?: number;
  /** Listens on a port that other processes share in the same way. */
  readonly sharedPort?: boolean;
  /** What the overload guard measures. */
  readonly overloadProbe?: OverloadProbe;
  /** Wraps the store before any other code uses it. */
  readonly tapStore?: (store: Store) => Store;
  /** Wraps the application before the engine calls it. */
  readonly tap?: (serve: Serve, routes: readonly Route[]) => Serve;
  /** Combines the metric values of this process with those of its sibling processes. By default there are none. */
  readonly gatherMetrics?: (own: () => Promise<MetricValues>) => () => Promise<readonly MetricValues[]>;
}

/** Closes one part. The parts of a server are closed in the reverse order of its start. */
type Close = () => void | Promise<void>;

/**
 * Connects the parts and listens. Rejects when the address is taken or the store refuses permanently; everything
 * opened so far is then closed again.
 */
export async function startServer(config: Config, log: Logger, options: ServerOptions = {}): Promise<Server> {
  const closes: Close[] = [];
  try {
    return await start(config, log, options, closes);
  } catch (error) {
    await closeAll(closes);
    throw error;
  }
}

async function closeAll(closes: readonly Close[]): Promise<void> {
  for (const close of closes.toReversed()) await close();
}

/** Opens the parts in order. Each part adds to `closes` what closes it again, so they close in the reverse order. */
async function start(config: Config, log: Logger, options: ServerOptions, closes: Close[]): Promise<Server> {
  const parts: Parts = { config, log, options, closes, slots: new Slots(), metrics: new Metrics() };
  const store = await openTimedStore(parts, options);
  closes.push(() => store.close());
  await fillWithSample(store, config, log);
  const transcoder = createTranscoder(parts.slots);
  const access = await openAccess(config, log, options.overloadProbe);
  closes.push(() => access.close());
  const { metrics, slots } = parts;
  const { retryMs = RETRY_MS, leaseMs } = options;
  const openStreams = (rows: RowStore) =>
    createReaders(rows, slots, { retryMs, onRetry: metrics.retried }).streams;
  const streams = openStreams(store.items);
  const resources = await openDeclared(parts, store, retryMs);
  const sources = exportSources(store.items, streams, resources, openStreams);
  const exports = await openExports(config, { store, sources, transcoder, log, leaseMs });
  closes.push(() => exports.exporter.close());
  metrics.watch({
    openStreams: () => access.streams.open,
    runningExports: () => exports.exporter.running,
    exports: () => exports.exporter.counts,
    overloaded: () => access.guard.overloaded,
    transcodedMs: () => transcoder.busyMs(),
  });
  let isDraining = false;
  const stopping = new AbortController();
  // One listener for each open feed.
  setMaxListeners(0, stopping.signal);
  const app = openApp(parts, {
    store,
    streams,
    openStreams,
    transcoder,
    access,
    exports,
    resources,
    isDraining: () => isDraining,
    stopping: stopping.signal,
  });
  const keyed = { config, log, scopes: app.scopes, resources };
  const watch = await watchKeys(keyed, access);
  closes.push(() => watch?.close());
  await openGrants(keyed, access);
  const { engine, url } = await openEngine(parts, app);
  closes.push(() => stopping.abort(new StoppedError()));
  access.guard.start();
  log.info({ url, engine, store: store.name }, 'listening');

  const close = async (): Promise<void> => {
    isDraining = true;
    await sleep(config.DRAIN_DELAY);
    await closeAll(closes);
  };
  let closed: Promise<void> | null = null;
  const reloadKeys = () => watch?.reload() ?? Promise.resolve(false);
  return { url, engine, store, slots, close: () => (closed ??= close()), reloadKeys };
}

/** What every part of a server is opened with. */
interface Parts {
  readonly config: Config;
  readonly log: Logger;
  readonly options: ServerOptions;
  readonly closes: Close[];
  readonly slots: Slots;
  readonly metrics: Metrics;
}

/** What the application answers from. */
interface Sources {
  readonly store: Store;
  readonly streams: StreamReader;
  readonly openStreams: (rows: RowStore) => StreamReader;
  readonly transcoder: Transcoder;
  readonly access: Access;
  readonly exports: Exports;
  readonly resources: readonly OpenResource[];
  readonly isDraining: () => boolean;
  readonly stopping: AbortSignal;
}

function openApp(
  { config, log, options, metrics, slots }: Parts,
  sources: Sources,
): ReturnType<typeof createApp> {
  const { store, streams, openStreams, transcoder, access, exports, resources, isDraining, stopping } =
    sources;
  const ownMetrics = () => metrics.values();
  const reading = {
    transcoder,
    limits: { maxLimit: config.MAX_LIMIT, maxOffset: config.MAX_OFFSET },
    cacheControl: config.CACHE_CONTROL,
    parked: metrics.parked,
    stopping,
    ...(options.heartbeatMs !== undefined && { heartbeatMs: options.heartbeatMs }),
  };
  const logged = requestLog(log);
  const audited = config.needsKeys ? auditLog(log) : null;
  return createApp({
    items: {
      ...reading,
      items: store.items,
      ...{ streams, openStreams, idType: config.ID_TYPE },
    },
    resources: { ...reading, open: resources },
    users: { ...reading, users: store.users, slots, now: Date.now },
    exports: { ...exports, files: store.files, now: () => new Date(), ttlMs: config.EXPORT_TTL },
    health: { store, isDraining },
    corsOrigin: config.CORS_ORIGIN,
    admissions: access.admissions,
    observer: {
      began: metrics.began,
      waits: metrics.waits,
      finished: (...request) => {
        metrics.finished(...request);
        logged(...request);
        audited?.(...request);
      },
    },
    document: { version: VERSION, withKeys: config.needsKeys, limited: config.rateLimit !== null },
    metrics: options.gatherMetrics?.(ownMetrics) ?? (async () => [await ownMetrics()]),
  });
}

/** Listens. Closes first: running requests then finish or are cut while the other parts still work. */
async function openEngine(
  { config, log, options, closes }: Parts,
  { serve, routes }: ReturnType<typeof createApp>,
): Promise<{ readonly engine: string; readonly url: string }> {
  const { quietMs = QUIET_MS, sharedPort = false, tap } = options;
  const { engine, warning } = createEngine(config.HTTP_ENGINE, {
    serve: tap ? tap(serve, routes) : serve,
    bodyLimit: BODY_LIMIT,
    stallTimeoutMs: config.STALL_TIMEOUT,
    quietMs,
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
  closes.push(() => engine.stop(config.STREAM_GRACE));
  const host = config.HOST.includes(':') ? `[${config.HOST}]` : config.HOST;
  return { engine: engine.name, url: `http://${host}:${port}` };
}
