import { randomBytes } from 'node:crypto';
import { reasonOf } from '../base/error-reason.ts';
import { AppError } from '../base/errors.ts';
import type { JobQueue, QueueOptions } from '../queue/queue.ts';
import { attempt, StoppedError, type AttemptOptions } from './attempt.ts';
import { STATES, type State } from './export.ts';
import { removeLeftovers } from './file.ts';
import { claim, dueIn, filesOf, isExpired, LeaseLostError, type Job, type RunningJob } from './job.ts';

/** Milliseconds between looks at all records. Each record adds some, so that looks cost little with many exports. */
const LOOK_MS = 5_000;
const RECORD_MS = 5;
const LONGEST_LOOK_MS = 60_000;
interface ExporterOptions extends AttemptOptions {
  readonly openQueue: (options: Pick<QueueOptions, 'work'>) => JobQueue;
  readonly lookMs?: number;
}

/**
 * Works on exports in this process. The records hold all state, messages of the queue are hints. So it also looks by
 * itself for jobs whose message was lost or whose worker died, for expired records, and for files without one.
 */
export class Exporter {
  readonly #options: ExporterOptions;
  readonly #lookMs: number;
  readonly #queue: JobQueue;
  /** What ends the attempts of this process, by the ids of their exports. */
  readonly #running = new Map<string, AbortController>();
  readonly #stop = new AbortController();
  readonly #looking: Promise<void>;
  #counts = countsOf([]);
  /** When all files were listed last. Milliseconds. */
  #listedAt = -Infinity;

  constructor(options: ExporterOptions) {
    this.#options = options;
    this.#lookMs = options.lookMs ?? LOOK_MS;
    this.#queue = options.openQueue({ work: (id) => this.#work(id) });
    this.#looking = this.#lookAgainAndAgain();
  }

  /** The number of exports that this process works on now. */
  get running(): number {
    return this.#running.size;
  }

  /** The number of exports in each state, over all processes, as of the last look. */
  get counts(): Readonly<Record<State, number>> {
    return this.#counts;
  }

  /** Offers a job after `delayMs` milliseconds. If the queue cannot be reached, it waits for a look of any process. */
  async offer(id: string, delayMs = 0): Promise<void> {
    try {
      await this.#queue.add(id, delayMs);
    } catch (error) {
      this.#options.log.warn(
        { exportId: id, reason: reasonOf(error) },
        'export waits: the queue cannot be reached',
      );
    }
  }

  /** Ends this process's work on a job that was cancelled or removed, at once. */
  dropped(id: string): void {
    this.#running.get(id)?.abort(new LeaseLostError(id));
  }

  /** Stops. Running jobs go back to the queue. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the server stops'));
    for (const one of this.#running.values()) one.abort(new StoppedError());
    await this.#queue.close();
    await this.#looking;
  }

  #isStopping(): boolean {
    return this.#stop.signal.aborted;
  }

  /** A job that fails here is left to the next look of any process. */
  async #work(id: string): Promise<number | null> {
    if (this.#isStopping()) return null;
    const { now, log } = this.#options;
    const token = randomBytes(8).toString('hex');
    try {
      let job = await this.#claimed(id, token);
      if (job?.state === 'running' && job.lease.token === token) job = await this.#attempted(job);
      return job && dueIn(job, now());
    } catch (error) {
      if (!(error instanceof LeaseLostError))
        log.warn({ exportId: id, err: error }, 'export could not be run');
      return null;
    }
  }

  /** Claims the job with this token if it is due. */
  async #claimed(id: string, token: string): Promise<Job | null> {
    const { jobs, now, leaseMs } = this.#options;
    const { after } = await jobs.change(id, (job) => {
      const wait = dueIn(job, now());
      if (wait === null || wait > 0) return job;
      return claim(job, { token, until: new Date(now().getTime() + leaseMs) });
    });
    return after;
  }

  /** Resolves with the job as the attempt left it. */
  async #attempted(job: RunningJob): Promise<Job | null> {
    const abort = new AbortController();
    this.#running.set(job.id, abort);
    if (this.#isStopping()) abort.abort(new StoppedError());
    try {
      await attempt(job, this.#options, abort);
      return await removeLeftovers(job.id, this.#options);
    } finally {
      if (this.#running.get(job.id) === abort) this.#running.delete(job.id);
    }
  }

  /** Removes what expired and files that no record needs, and offers jobs that are due. Resolves with the number of records. */
  async #look(): Promise<number> {
    const { jobs, now } = this.#options;
    const strays = await this.#files(); // before the records, see removeLeftovers
    const all = await jobs.all(this.#stop.signal);
    this.#counts = countsOf(all);
    for (const job of all) {
      const wait = dueIn(job, now());
      if (isExpired(job, now())) await jobs.change(job.id, () => null);
      else for (const name of filesOf(job)) strays.delete(name);
      if (wait !== null && !this.#running.has(job.id)) await this.offer(job.id, Math.max(0, wait));
    }
    for (const name of strays) await removeLeftovers(name.split('.')[0] ?? '', this.#options);
    return all.length;
  }

  /** The names of all files. None where a list costs something and was made a moment ago, and while they are out of reach. */
  async #files(): Promise<Set<string>> {
    const { files, now } = this.#options;
    const { listingMs = 0 } = files;
    const time = now().getTime();
    if (time - this.#listedAt < listingMs) return new Set();
    try {
      const names = await files.names();
      this.#listedAt = time;
      return new Set(names);
    } catch (error) {
      if (error instanceof AppError) return new Set(); // /readyz says it; exports are looked for all the same
      throw error;
    }
  }

  async #lookAgainAndAgain(): Promise<void> {
    const { log, pause } = this.#options;
    for (let records = 0; !this.#isStopping();) {
      try {
        records = await this.#look();
      } catch (error) {
        // An AppError means that the store is unavailable. Requests report that, and the next check tries again.
        if (!(error instanceof AppError) && !this.#isStopping())
          log.error({ err: error }, 'exports in the store could not be checked');
      }
      const ms = Math.max(this.#lookMs, Math.min(records * RECORD_MS, LONGEST_LOOK_MS));
      await pause(ms, this.#stop.signal).catch(() => undefined);
    }
  }
}

function countsOf(jobs: readonly Job[]): Record<State, number> {
  const counts = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
  for (const { state } of jobs) counts[state]++;
  return counts;
}
