import { randomBytes } from 'node:crypto';
import { AppError } from '../errors.ts';
import type { JobQueue, QueueOptions } from '../queue/queue.ts';
import { Attempt, type AttemptOptions } from './attempt.ts';
import { STATES, type State } from './export.ts';
import { claim, dueIn, filesOf, isExpired, isFinal, LeaseLostError, type Job, type Running } from './job.ts';
import { removeLeftovers } from './leftovers.ts';
import type { Log } from './log.ts';

/** How often it is looked for what is due, lost or over. Milliseconds. */
const LOOK_MS = 5_000;
/** How often all records are looked through, which costs more the more there are: for stray files, and to count. Milliseconds. */
const ALL_MS = 60_000;
/** A file that no record names is removed when it was found so for this long: what is read of the records may be late. */
const STRAY_MS = 60_000;

export interface ExporterOptions extends AttemptOptions {
  /** Makes the queue whose work is this exporter's. */
  readonly openQueue: (options: Pick<QueueOptions, 'work'>) => JobQueue;
  readonly lookMs?: number;
  readonly log: Log;
}

/**
 * Works on exports in this process. Everything it knows is in the records; a message of the queue only says where to look.
 * So it also looks by itself, from time to time: for jobs whose message was lost or whose worker is gone, for records
 * whose time is over, and for files that nobody needs.
 */
export class Exporter {
  readonly #options: ExporterOptions;
  readonly #queue: JobQueue;
  readonly #running = new Map<string, Attempt>();
  readonly #stop = new AbortController();
  /** Files that no record named, and when that was seen first. */
  #strays = new Map<string, number>();
  #counts = countsOf([]);
  /** When all records are looked through next. */
  #lookAtAll = -Infinity;
  #looking: Promise<void>;

  constructor(options: ExporterOptions) {
    this.#options = options;
    this.#queue = options.openQueue({ work: (id) => this.#work(id) });
    this.#looking = this.#lookAgainAndAgain();
  }

  /** Exports that this process works on now. */
  get running(): number {
    return this.#running.size;
  }

  /** How many exports of each state the store has, whoever works on them, as the last look at all found them. */
  get counts(): Readonly<Record<State, number>> {
    return this.#counts;
  }

  /** A job was ordered. That the queue cannot be reached delays it until somebody looks. */
  async ordered(id: string): Promise<void> {
    await this.#offer(id, 0);
  }

  /** A job was cancelled or removed: what is done for it here ends at once. */
  dropped(id: string): void {
    this.#running.get(id)?.drop();
  }

  /** Stops: jobs go back to the queue with what they have done. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the server stops'));
    for (const attempt of this.#running.values()) attempt.stop();
    await this.#queue.close();
    await this.#looking;
  }

  /** See Work. What is not done here is done by whoever looks next. */
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
        this.#options.log.warn({ export: id, err: error }, 'an export could not be worked on');
      return null;
    }
  }

  /** The job, taken; or how long it is not due yet; null when there is nothing to do. */
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
    // What a worker that is gone had begun, and nobody goes on with.
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
        // The store is away: requests say so, and the next look comes.
        if (!(error instanceof AppError) && !this.#isStopping())
          log.error({ err: error }, 'exports could not be looked through');
      }
      await pause(lookMs, signal).catch(() => undefined);
    }
  }

  #isStopping(): boolean {
    return this.#stop.signal.aborted;
  }

  /** At exports on their way, and at those whose time is over; now and then at all. */
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
    const names = await files.names(); // before the jobs: a file is made after its job was claimed
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
        { export: id, reason: error instanceof Error ? error.message : String(error) },
        'the queue cannot be reached: exports wait',
      );
    }
  }
}

function countsOf(jobs: readonly Job[]): Record<State, number> {
  const counts = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
  for (const { state } of jobs) counts[state]++;
  return counts;
}
