import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../base/log.ts';
import type { Tracer } from '../base/span.ts';
import { queueOpener, type QueueSettings } from '../queue/open.ts';
import type { Transcoder } from '../rows/rows.ts';
import type { FilesPlace } from '../store/bucket/place.ts';
import { openFiles } from './open-files.ts';
import type { Store } from '../store/store.ts';
import { Exporter } from '../exports/exporter.ts';
import { EXPORTS, Jobs } from '../exports/jobs.ts';
import type { ExportSources } from '../exports/order.ts';

/** A process that is delayed for longer finds that another worker has its export. Milliseconds. */
const LEASE_MS = 10_000;

/** The settings of exports. See settings.ts for their units. */
interface ExportSettings extends QueueSettings {
  readonly EXPORT_LIMIT: number;
  readonly EXPORT_TTL: number;
  readonly EXPORT_LINK_TTL: number;
  readonly FILES_PROXY: 'true' | 'false';
  readonly filesPlace: FilesPlace | null;
}

interface OpenExportsOptions {
  readonly store: Pick<Store, 'files' | 'records'>;
  readonly sources: () => ExportSources;
  readonly transcoder: Transcoder;
  readonly log: Log;
  readonly tracer: Tracer | null;
  /** How many requests this process has begun so far. */
  readonly begun: () => number;
  /** How long an export stays reserved for a worker that has stopped renewing its lease. Milliseconds; 10 s by default. */
  readonly leaseMs?: number | undefined;
}

/** Where GridFS keeps files of exports. */
const STORED_FILES = ['exports.files', 'exports.chunks'];

/** Whether exports are served: this server may write what they need. Logs when it may not. */
export async function servesExports(
  store: Pick<Store, 'mayWrite'>,
  { filesPlace }: Pick<ExportSettings, 'filesPlace'>,
  log: Log,
): Promise<boolean> {
  const needed = [EXPORTS.collection, ...(filesPlace === null ? STORED_FILES : [])];
  for (const collection of needed) {
    if ((await store.mayWrite?.({ collection })) !== false) continue;
    log.warn(
      { collection },
      'exports are not served: the user of the database may not write this collection',
    );
    return false;
  }
  return true;
}

/** Opens what the settings ask for, and starts to work on exports. `close` ends both. */
export async function openExports(
  settings: ExportSettings,
  { store, sources, transcoder, log, tracer, begun, leaseMs = LEASE_MS }: OpenExportsOptions,
) {
  const records = await store.records(EXPORTS);
  const now = () => new Date();
  let perClient = settings.EXPORT_LIMIT;
  const jobs = new Jobs({ records, perClient: () => perClient, now });
  const files = await openFiles(settings.filesPlace, store, () => jobs.storeId());
  const linkSeconds = settings.FILES_PROXY === 'true' ? null : settings.EXPORT_LINK_TTL / 1000;
  const shared = { jobs, files, now, ttlMs: settings.EXPORT_TTL, linkSeconds, isTraced: tracer !== null };
  const exporter = new Exporter({
    ...shared,
    sources,
    transcoder,
    begun,
    log,
    tracer,
    leaseMs,
    pause: (ms, signal) => sleep(ms, undefined, { signal }),
    openQueue: await queueOpener(settings, log, async () => String(await jobs.storeId())),
  });
  const close = async (): Promise<void> => {
    const stopped = exporter.close();
    files.close?.(); // what waits for a bucket that is away need not wait any longer
    await stopped;
  };
  const limit = (next: number): void => {
    perClient = next;
  };
  return { ...shared, exporter, limit, close };
}
