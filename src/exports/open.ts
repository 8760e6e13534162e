import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../log.ts';
import { queueOpener, type QueueSettings } from '../queue/open.ts';
import type { Transcoder } from '../rows/rows.ts';
import type { Store } from '../store/store.ts';
import { Exporter } from './exporter.ts';
import { EXPORTS, Jobs } from './jobs.ts';
import type { ExportOptions } from './routes.ts';
import type { ExportSources } from './source.ts';

/**
 * A living worker renews its lease. A process that is delayed for longer finds that another worker has taken over its
 * export.
 */
const LEASE_MS = 10_000;

/** The settings of exports. See settings.ts for their units. */
export interface ExportSettings extends QueueSettings {
  readonly EXPORT_LIMIT: number;
  readonly EXPORT_TTL: number;
}

export interface OpenExportsOptions {
  readonly store: Pick<Store, 'files' | 'records'>;
  readonly sources: () => ExportSources;
  readonly transcoder: Transcoder;
  readonly log: Log;
  /** How long an export stays reserved for a worker that has stopped renewing its lease. Milliseconds; 10 s by default. */
  readonly leaseMs?: number | undefined;
}

/** Opens what the settings ask for, and starts to work on exports. Closing the exporter closes them. */
export async function openExports(
  settings: ExportSettings,
  { store, sources, transcoder, log, leaseMs = LEASE_MS }: OpenExportsOptions,
): Promise<ExportOptions & { readonly exporter: Exporter }> {
  const { files } = store;
  const records = await store.records(EXPORTS);
  const now = () => new Date();
  const jobs = new Jobs({ records, perClient: settings.EXPORT_LIMIT, now });
  const shared = { jobs, files, now, ttlMs: settings.EXPORT_TTL };
  const exporter = new Exporter({
    ...{ ...shared, sources, transcoder, log, leaseMs },
    pause: (ms, signal) => sleep(ms, undefined, { signal }),
    openQueue: await queueOpener(settings, log, () => jobs.storeId()),
  });
  return { ...shared, exporter };
}
