import { randomBytes } from 'node:crypto';
import { AppError } from '../errors.ts';
import type { JobQueue, QueueOptions } from '../queue/queue.ts';
import { Attempt, type AttemptOptions } from './attempt.ts';
import { STATES, type State } from './export.ts';
import { claim, dueIn, filesOf, isExpired, isFinal, LeaseLostError, type Job, type Running } from './job.ts';
import { removeLeftovers } from './file.ts';
import type { Log } from '../log.ts';
import { reasonOf } from '../thrown.ts';

/** The interval between checks for due, lost and expired exports. Milliseconds. */
const LOOK_MS = 5_000;
/**
 * The interval between reads of all records, which find stray files and count the exports. The cost of a read grows with
 * the number of records. Milliseconds.
 */
const ALL_MS = 60_000;
/** A file that no record names is removed after this time, because a read of the records may be stale. Milliseconds. */
const STRAY_MS = 60_000;

export interface ExporterOptions extends AttemptOptions {
  /** Opens the queue whose jobs this exporter works on. */
  readonly openQueue: (options: Pick<QueueOptions, 'work'>) => JobQueue;
  readonly lookMs?: number;
  readonly log: Log;
}

/**
 * Works on exports in this process. The records hold the whole state. A message of the queue is only a hint, so the
 * exporter also checks by itself at intervals: for jobs whose message was lost or whose worker died, for expired
 * records, and for files that no record needs.
 */
export class Exporter {
  readonly #options: ExporterOptions;
  readonly #queue: JobQueue;
  readonly #running = new Map<string, Attempt>();
  readonly #stop = new AbortController();
  /** Files that no record names, each with the time (ms since the epoch) of the first check that found it so. */
  #strays = new Map<string, number>();
  #counts = countsOf([]);
  /** The time of the next read of all records. Milliseconds since the epoch. */
  #lookAtAll = -Infinity;
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

  /** The number of exports in each state, over all processes, as of the last read of all records. */
  get counts(): Readonly<Record<State, number>> {
    return this.#counts;
  }

  /** Announces a new job. If the queue cannot be reached, the job waits for the next check by any process. */
  async ordered(id: string): Promise<void> {
    await this.#offer(id, 0);
  }

  /** Ends this process's work on a job that was cancelled or removed, at once. */
  dropped(id: string): void {
    this.#running.get(id)?.drop();
  }

  /** Stops. Running jobs go back to the queue and keep their progress. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the server stops'));
    for (const attempt of this.#running.values()) attempt.stop();
    await this.#queue.close();
    await this.#looking;
  }

  /** Implements `Work`. A job that fails here is left to the next check by any process. */
  async #work(id: string): Promise<number | null> {
    try {
      const claimed = await this.#claim(id);
      if (typeof claimed === 'number' || claimed === null) return claimed;
      const attempt = new Attempt(claimed, this.#options);
      this.#running.set(id, attempt);
      if (this.#isStopping()) attempt.stop();
      try {
        return await attempt.run();
      } finally {
        this.#running.delete(id);
      }
    } catch (error) {
      if (!(error instanceof LeaseLostError))
        this.#options.log.warn({ exportId: id, err: error }, 'export could not be run');
      return null;
    }
  }

  /**
   * Claims the job. Resolves with the claimed job, with the milliseconds until the job is due, or with null when there is
   * nothing to do.
   */
  async #claim(id: string): Promise<Running | number | null> {
    const { jobs, files, now, leaseMs } = this.#options;
    if (this.#isStopping()) return null;
    const token = randomBytes(8).toString('hex');
    const until = new Date(now().getTime() + leaseMs);
    const { before, after: job } = await jobs.change(id, (current) => {
      const wait = dueIn(current, now());
      return isFinal(current) || wait === null || wait > 0 ? current : claim(current, { token, until });
    });
    if (!before || job?.state !== 'running' || job.lease.token !== token) return job && dueIn(job, now());
    // Remove the files of a worker that died, which no one will continue.
    for (const name of filesOf(before)) if (!filesOf(job).includes(name)) await files.remove(name);
    return job;
  }

  async #lookAgainAndAgain(): Promise<void> {
    const { log, pause, lookMs = LOOK_MS } = this.#options;
    const { signal } = this.#stop;
    while (!this.#isStopping()) {
      try {
        await this.#look();
      } catch (error) {
        // An AppError means that the store is unavailable. Requests report that, and the next check tries again.
        if (!(error instanceof AppError) && !this.#isStopping())
          log.error({ err: error }, 'exports in the store could not be checked');
      }
      await pause(lookMs, signal).catch(() => undefined);
    }
  }

  #isStopping(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Checks live and expired exports; every ALL_MS it reads all records instead. */
  async #look(): Promise<void> {
    const { jobs, now } = this.#options;
    const { signal } = this.#stop;
    if (now().getTime() >= this.#lookAtAll) {
      await this.#lookThrough();
      this.#lookAtAll = now().getTime() + ALL_MS;
      return;
    }
    for (const job of await jobs.ended(signal)) await this.#expire(job);
    await this.#offerDue(await jobs.live(signal));
  }

  async #lookThrough(): Promise<void> {
    const { jobs, files, now } = this.#options;
    const names = await files.names(); // before the jobs are read, because a file is created after its job is claimed
    const all = await jobs.all(this.#stop.signal);
    this.#counts = countsOf(all.jobs);
    await jobs.repair(all);
    const kept = all.jobs.filter((job) => !isExpired(job, now()));
    for (const job of all.jobs) if (isExpired(job, now())) await this.#expire(job);
    await this.#offerDue(kept);
    const needed = new Set(kept.flatMap(filesOf));
    await this.#removeStrays(names.filter((name) => !needed.has(name)));
  }

  async #expire(job: Job): Promise<void> {
    const { jobs, files, now } = this.#options;
    const { after } = await jobs.change(job.id, (current) => (isExpired(current, now()) ? null : current));
    if (after) return;
    await removeLeftovers(files, job.id, null);
  }

  async #offerDue(jobs: readonly Job[]): Promise<void> {
    for (const job of jobs) {
      const wait = dueIn(job, this.#options.now());
      if (wait !== null && !this.#running.has(job.id)) await this.#offer(job.id, Math.max(0, wait));
    }
  }

  async #removeStrays(found: readonly string[]): Promise<void> {
    const { files, now } = this.#options;
    const time = now().getTime();
    const before = this.#strays;
    this.#strays = new Map(found.map((name) => [name, before.get(name) ?? time]));
    for (const [name, since] of this.#strays) if (time - since >= STRAY_MS) await files.remove(name);
  }

  async #offer(id: string, delayMs: number): Promise<void> {
    try {
      await this.#queue.add(id, delayMs);
    } catch (error) {
      this.#options.log.warn(
        { exportId: id, reason: reasonOf(error) },
        'export waits: the queue cannot be reached',
      );
    }
  }
}

function countsOf(jobs: readonly Job[]): Record<State, number> {
  const counts = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
  for (const { state } of jobs) counts[state]++;
  return counts;
}
