import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../log.ts';
import { queueOpener, type QueueSettings } from '../queue/open.ts';
import type { ExportFormat } from '../rows/formats.ts';
import type { Transcoder } from '../rows/rows.ts';
import type { Store } from '../store/store.ts';
import { Exporter } from './exporter.ts';
import { Jobs } from './jobs.ts';
import { whyNoParquet } from './parquet.ts';
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
  readonly store: Pick<Store, 'files' | 'exports'>;
  readonly sources: ExportSources;
  readonly transcoder: Transcoder;
  readonly log: Log;
  /** How long an export stays reserved for a worker that has stopped renewing its lease. Milliseconds; 10 s by default. */
  readonly leaseMs?: number | undefined;
}

/** The exports of a store: what they read, their records, and the worker of this process. Closing the worker closes them. */
export interface Exports {
  readonly sources: ExportSources;
  readonly jobs: Jobs;
  readonly exporter: Exporter;
  /** Why this process cannot write a format. Null when it can. */
  readonly refusal: (format: ExportFormat) => string | null;
}

/** Opens what the settings ask for, and starts to work on exports. */
export async function openExports(settings: ExportSettings, options: OpenExportsOptions): Promise<Exports> {
  const { store, sources, transcoder, log, leaseMs = LEASE_MS } = options;
  const { files, exports: records } = store;
  const now = () => new Date();
  const jobs = new Jobs({ records, perClient: settings.EXPORT_LIMIT, now });
  const exporter = new Exporter({
    ...{ jobs, files, sources, transcoder, log, now, leaseMs },
    pause: (ms, signal) => sleep(ms, undefined, { signal }),
    ttlMs: settings.EXPORT_TTL,
    openQueue: await queueOpener(settings, log, () => jobs.storeId()),
  });
  const refusal = (format: ExportFormat) => (format === 'parquet' ? whyNoParquet() : null);
  return { sources, jobs, exporter, refusal };
}
