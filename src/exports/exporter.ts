import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { reasonOf } from '../base/error-reason.ts';
import { AppError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { queueOpener, type QueueSettings } from '../queue/open.ts';
import type { JobQueue, QueueOptions, Work } from '../queue/queue.ts';
import type { Transcoder } from '../rows/rows.ts';
import type { Store } from '../store/store.ts';
import { attempt, StoppedError, type AttemptOptions } from './attempt.ts';
import { STATES, type State } from './export.ts';
import { removeLeftovers } from './file.ts';
import { claim, dueIn, filesOf, isExpired, LeaseLostError, type Job, type RunningJob } from './job.ts';
import { EXPORTS, Jobs } from './jobs.ts';
import type { ExportSources } from './order.ts';

/** Milliseconds between looks at all records. Each record adds some, so that looks cost little with many exports. */
const LOOK_MS = 5_000;
const RECORD_MS = 5;
const LONGEST_LOOK_MS = 60_000;
/** A process that is delayed for longer finds that another worker has its export. Milliseconds. */
const LEASE_MS = 10_000;

interface ExporterOptions extends AttemptOptions {
  readonly openQueue: (options: Pick<QueueOptions, 'work'>) => JobQueue;
  readonly lookMs?: number;
}

export type Exporter = ReturnType<typeof createExporter>;

/**
 * Works on exports in this process. The records hold all state, messages of the queue are hints. So it also looks by
 * itself for jobs whose message was lost or whose worker died, for expired records, and for files without one.
 */
export function createExporter(options: ExporterOptions) {
  const { jobs, files, log, now, pause, leaseMs, lookMs = LOOK_MS } = options;
  /** What ends the attempts of this process, by the ids of their exports. */
  const running = new Map<string, AbortController>();
  const stop = new AbortController();
  const isStopping = () => stop.signal.aborted;
  let counts = countsOf([]);

  /** Claims the job with this token if it is due. */
  const claimed = async (id: string, token: string): Promise<Job | null> => {
    const { after } = await jobs.change(id, (job) => {
      const wait = dueIn(job, now());
      if (wait === null || wait > 0) return job;
      return claim(job, { token, until: new Date(now().getTime() + leaseMs) });
    });
    return after;
  };

  /** Resolves with the job as the attempt left it. */
  const attempted = async (job: RunningJob): Promise<Job | null> => {
    const abort = new AbortController();
    running.set(job.id, abort);
    if (isStopping()) abort.abort(new StoppedError());
    try {
      await removeLeftovers(job.id, options); // of a worker that died
      await attempt(job, options, abort);
      return await removeLeftovers(job.id, options);
    } finally {
      if (running.get(job.id) === abort) running.delete(job.id);
    }
  };

  /** A job that fails here is left to the next look of any process. */
  const work: Work = async (id) => {
    if (isStopping()) return null;
    const token = randomBytes(8).toString('hex');
    try {
      let job = await claimed(id, token);
      if (job?.state === 'running' && job.lease.token === token) job = await attempted(job);
      return job && dueIn(job, now());
    } catch (error) {
      if (!(error instanceof LeaseLostError))
        log.warn({ exportId: id, err: error }, 'export could not be run');
      return null;
    }
  };
  const queue = options.openQueue({ work });

  /** Offers a job after `delayMs` milliseconds. If the queue cannot be reached, it waits for a look of any process. */
  const offer = async (id: string, delayMs = 0): Promise<void> => {
    try {
      await queue.add(id, delayMs);
    } catch (error) {
      log.warn({ exportId: id, reason: reasonOf(error) }, 'export waits: the queue cannot be reached');
    }
  };

  /** Removes what expired and files that no record needs, and offers jobs that are due. Resolves with the number of records. */
  const look = async (): Promise<number> => {
    const strays = new Set(await files.names()); // before the records, see removeLeftovers
    const all = await jobs.all(stop.signal);
    counts = countsOf(all);
    for (const job of all) {
      const wait = dueIn(job, now());
      if (isExpired(job, now())) await jobs.change(job.id, () => null);
      else for (const name of filesOf(job)) strays.delete(name);
      if (wait !== null && !running.has(job.id)) await offer(job.id, Math.max(0, wait));
    }
    for (const name of strays) await removeLeftovers(name.split('.')[0] ?? '', options);
    return all.length;
  };

  const lookAgainAndAgain = async (): Promise<void> => {
    for (let records = 0; !isStopping();) {
      try {
        records = await look();
      } catch (error) {
        // An AppError means that the store is unavailable. Requests report that, and the next check tries again.
        if (!(error instanceof AppError) && !isStopping())
          log.error({ err: error }, 'exports in the store could not be checked');
      }
      const ms = Math.max(lookMs, Math.min(records * RECORD_MS, LONGEST_LOOK_MS));
      await pause(ms, stop.signal).catch(() => undefined);
    }
  };
  const looking = lookAgainAndAgain();

  return {
    /** The number of exports that this process works on now. */
    get running(): number {
      return running.size;
    },
    /** The number of exports in each state, over all processes, as of the last look. */
    get counts(): Readonly<Record<State, number>> {
      return counts;
    },
    offer,
    /** Ends this process's work on a job that was cancelled or removed, at once. */
    dropped: (id: string): void => running.get(id)?.abort(new LeaseLostError(id)),
    /** Stops. Running jobs go back to the queue. */
    async close(): Promise<void> {
      stop.abort(new Error('the server stops'));
      for (const one of running.values()) one.abort(new StoppedError());
      await queue.close();
      await looking;
    },
  };
}

function countsOf(jobs: readonly Job[]): Record<State, number> {
  const counts = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
  for (const { state } of jobs) counts[state]++;
  return counts;
}

/** The settings of exports. See settings.ts for their units. */
interface ExportSettings extends QueueSettings {
  readonly EXPORT_LIMIT: number;
  readonly EXPORT_TTL: number;
}

interface OpenExportsOptions {
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
) {
  const { files } = store;
  const records = await store.records(EXPORTS);
  const now = () => new Date();
  const jobs = new Jobs({ records, perClient: settings.EXPORT_LIMIT, now });
  const shared = { jobs, files, now, ttlMs: settings.EXPORT_TTL };
  const exporter = createExporter({
    ...shared,
    sources,
    transcoder,
    log,
    leaseMs,
    pause: (ms, signal) => sleep(ms, undefined, { signal }),
    openQueue: await queueOpener(settings, log, () => jobs.storeId()),
  });
  return { ...shared, exporter };
}
