import { randomBytes } from 'node:crypto';
import { AppError } from '../errors.ts';
import type { JobQueue, QueueOptions } from '../queue/queue.ts';
import { attempt, StoppedError, type AttemptOptions } from './attempt.ts';
import { STATES, type State } from './export.ts';
import { claim, dueIn, filesOf, isExpired, LeaseLostError, type Job, type Running } from './job.ts';
import { removeLeftovers } from './file.ts';
import { reasonOf } from '../error-reason.ts';

/**
 * The interval between looks at all records: for jobs whose message was lost or whose worker died, and for what expired.
 * Each record makes it longer, so that a look costs little however many exports there are. Milliseconds.
 */
const LOOK_MS = 5_000;
const RECORD_MS = 5;
const LONGEST_LOOK_MS = 60_000;

export interface ExporterOptions extends AttemptOptions {
  /** Opens the queue whose jobs this exporter works on. */
  readonly openQueue: (options: Pick<QueueOptions, 'work'>) => JobQueue;
  readonly lookMs?: number;
}

/**
 * Works on exports in this process. The records hold the whole state. A message of the queue is only a hint, so the
 * exporter also checks by itself at intervals: for jobs whose message was lost or whose worker died, for expired
 * records, and for files that no record needs.
 */
export class Exporter {
  readonly #options: ExporterOptions;
  readonly #queue: JobQueue;
  /** What ends the attempts of this process, by the ids of their exports. */
  readonly #running = new Map<string, AbortController>();
  readonly #stop = new AbortController();
  #counts = countsOf([]);
  #looking: Promise<void>;

  constructor(options: ExporterOptions) {
    this.#options = options;
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
      const reason = reasonOf(error);
      this.#options.log.warn({ exportId: id, reason }, 'export waits: the queue cannot be reached');
    }
  }

  /** Ends this process's work on a job that was cancelled or removed, at once. */
  dropped(id: string): void {
    this.#running.get(id)?.abort(new LeaseLostError(id));
  }

  /** Stops. Running jobs go back to the queue. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the server stops'));
    for (const running of this.#running.values()) running.abort(new StoppedError());
    await this.#queue.close();
    await this.#looking;
  }

  /** Implements `Work`. A job that fails here is left to the next look of any process. */
  async #work(id: string): Promise<number | null> {
    if (this.#isStopping()) return null;
    const token = randomBytes(8).toString('hex');
    try {
      let job = await this.#claim(id, token);
      if (job?.state === 'running' && job.lease.token === token) job = await this.#attempt(job);
      return job && dueIn(job, this.#options.now());
    } catch (error) {
      if (!(error instanceof LeaseLostError))
        this.#options.log.warn({ exportId: id, err: error }, 'export could not be run');
      return null;
    }
  }

  /** Claims the job with this token if it is due. */
  async #claim(id: string, token: string): Promise<Job | null> {
    const { jobs, now, leaseMs } = this.#options;
    const { after } = await jobs.change(id, (job) => {
      const wait = dueIn(job, now());
      if (wait === null || wait > 0) return job;
      return claim(job, { token, until: new Date(now().getTime() + leaseMs) });
    });
    return after;
  }

  /** Resolves with the job as the attempt left it. */
  async #attempt(job: Running): Promise<Job | null> {
    const abort = new AbortController();
    this.#running.set(job.id, abort);
    if (this.#isStopping()) abort.abort(new StoppedError());
    try {
      await removeLeftovers(job.id, this.#options); // of a worker that died
      await attempt(job, this.#options, abort);
      return await removeLeftovers(job.id, this.#options);
    } finally {
      if (this.#running.get(job.id) === abort) this.#running.delete(job.id);
    }
  }

  async #lookAgainAndAgain(): Promise<void> {
    const { log, pause, lookMs = LOOK_MS } = this.#options;
    const { signal } = this.#stop;
    for (let records = 0; !this.#isStopping();) {
      try {
        records = await this.#look();
      } catch (error) {
        // An AppError means that the store is unavailable. Requests report that, and the next check tries again.
        if (!(error instanceof AppError) && !this.#isStopping())
          log.error({ err: error }, 'exports in the store could not be checked');
      }
      const ms = Math.max(lookMs, Math.min(records * RECORD_MS, LONGEST_LOOK_MS));
      await pause(ms, signal).catch(() => undefined);
    }
  }

  #isStopping(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Removes what expired and files that no record needs, and offers jobs that are due. Resolves with the number of records. */
  async #look(): Promise<number> {
    const { jobs, files, now } = this.#options;
    const names = await files.names(); // before the records, see removeLeftovers
    const all = await jobs.all(this.#stop.signal);
    this.#counts = countsOf(all);
    const strays = new Set(names);
    for (const job of all) {
      const wait = dueIn(job, now());
      if (isExpired(job, now())) await jobs.change(job.id, () => null);
      else for (const name of filesOf(job)) strays.delete(name);
      if (wait !== null && !this.#running.has(job.id)) await this.offer(job.id, Math.max(0, wait));
    }
    for (const name of strays) await removeLeftovers(name.split('.')[0] ?? '', this.#options);
    return all.length;
  }
}

function countsOf(jobs: readonly Job[]): Record<State, number> {
  const counts = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
  for (const { state } of jobs) counts[state]++;
  return counts;
}
