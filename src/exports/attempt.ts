import { AppError } from '../errors.ts';
import type { Log } from '../log.ts';
import { UnfitRowError } from '../rows/arrow/writer.ts';
import { removeLeftovers } from './file.ts';
import {
  advance,
  complete,
  fail,
  fileName,
  giveBack,
  LeaseLostError,
  type Failure,
  type FinishedFile,
  type Final,
  type Job,
  type Lease,
  type Progress,
  type Running,
} from './job.ts';
import type { Jobs } from './jobs.ts';
import { writeFile, type WriteOptions } from './write.ts';

/**
 * The interval at which progress is saved and the lease is checked, in milliseconds. A lease lasts several
 * intervals.
 */
const BEAT_MS = 1_000;
const BEATS_A_LEASE = 4;
/** A job fails for good after this many failed attempts. */
const MOST_FAILURES = 5;
/** Failures that every further attempt would meet again. */
const LASTING_FAILURES: ReadonlySet<string> = new Set([
  'insufficient-storage',
  'collection-replaced',
  'invalid-body',
]);
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 60_000;

export interface AttemptOptions extends WriteOptions {
  readonly jobs: Jobs;
  readonly now: () => Date;
  /** How long a job stays reserved for a worker that does not respond, in milliseconds. */
  readonly leaseMs: number;
  /** How long a finished job is kept, in milliseconds. */
  readonly ttlMs: number;
  /** Resolves after `ms` milliseconds. Rejects when the signal is aborted before that. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly log: Log;
}

/** The server stops. Another worker is to take the job. */
class StoppedError extends Error {}

/**
 * One attempt at a claimed job: it writes the whole file, beside a heartbeat that renews the lease and saves the progress,
 * and then changes the job's state.
 */
export class Attempt {
  readonly #job: Running;
  readonly #options: AttemptOptions;
  readonly #abort = new AbortController();
  #lease: Lease;
  #progress: Progress;
  /** The progress that the record has. */
  #saved: Progress;

  constructor(job: Running, options: AttemptOptions) {
    this.#job = job;
    this.#options = options;
    this.#lease = job.lease;
    this.#progress = this.#saved = job.progress;
  }

  /** Stops the attempt because the server stops. The job returns to the queue. */
  stop(): void {
    this.#abort.abort(new StoppedError());
  }

  /** Stops the attempt because the job was cancelled. */
  drop(): void {
    this.#abort.abort(new LeaseLostError(this.#job.id));
  }

  /**
   * Runs the attempt to its end (see Work). Rejects when the record cannot be changed. The lease then
   * expires.
   */
  async run(): Promise<number | null> {
    const { signal } = this.#abort;
    const ended = new AbortController();
    const beating = this.#beat(ended.signal);
    try {
      const file = await writeFile(this.#job, this.#options, signal, (news) => {
        this.#progress = { ...this.#progress, ...news };
      });
      ended.abort();
      await beating;
      signal.throwIfAborted();
      return await this.#complete(file);
    } catch (error) {
      ended.abort();
      await beating;
      return await this.#failed(signal.aborted ? signal.reason : error);
    }
  }

  /** Renews the lease until `ended` is aborted. Never rejects: an error ends the attempt. */
  async #beat(ended: AbortSignal): Promise<void> {
    while (await this.#pauses(ended)) {
      try {
        await this.#save();
      } catch (error) {
        if (!this.#mayGoOn(error)) this.#abort.abort(error);
      }
    }
  }

  /**
   * Resolves with true when the time of the next beat comes, with false when the attempt ends before that.
   */
  #pauses(ended: AbortSignal): Promise<boolean> {
    const { pause, leaseMs } = this.#options;
    return pause(Math.min(BEAT_MS, leaseMs / BEATS_A_LEASE), ended).then(
      () => true,
      () => false,
    );
  }

  async #save(): Promise<void> {
    const { jobs, now, leaseMs } = this.#options;
    const progress = this.#progress;
    const left = this.#lease.until.getTime() - now().getTime();
    if (progress === this.#saved && left > leaseMs / 2) return;
    const lease = { token: this.#lease.token, until: new Date(now().getTime() + leaseMs) };
    await jobs.advance(this.#job.id, (job) => advance(job, lease, progress));
    this.#lease = lease;
    this.#saved = progress;
  }

  /**
   * Whether the attempt continues after this error: while the store is unavailable and the lease still holds,
   * so that nobody else can have taken the job.
   */
  #mayGoOn(error: unknown): boolean {
    return isUnavailable(error) && this.#lease.until > this.#options.now();
  }

  async #complete(file: FinishedFile): Promise<null> {
    const { id, lease } = this.#job;
    const { jobs, log } = this.#options;
    const progress = { ...this.#progress, rows: file.rows, bytes: file.bytes };
    const job = await jobs.advance(id, (current) =>
      complete(current, lease.token, progress, file, this.#final()),
    );
    log.info({ exportId: id, rows: file.rows, bytes: file.bytes }, 'export complete');
    await this.#clear(job);
    return null;
  }

  async #failed(error: unknown): Promise<number | null> {
    const { id, lease } = this.#job;
    const { jobs, log, files, now } = this.#options;
    if (error instanceof LeaseLostError) {
      await this.#discard();
      return null;
    }
    const { identity } = this.#progress; // the next attempt reads this collection, or fails
    const current = (job: Job) => ({ ...job, progress: { ...job.progress, identity } });
    if (error instanceof StoppedError) {
      await this.#clear(await jobs.advance(id, (job) => giveBack(current(job), lease.token, now(), false)));
      return 0;
    }
    const failure = failureOf(error);
    log[failure.code === 'internal' ? 'error' : 'warn'](
      { export: id, err: error },
      'attempt at an export failed',
    );
    if (failure.code === 'insufficient-storage') await files.remove(fileName(id, lease.token)); // makes room for the record
    const job = await jobs.advance(id, (saved) => {
      const failures = saved.failures + 1;
      if (LASTING_FAILURES.has(failure.code) || failures >= MOST_FAILURES)
        return fail(current(saved), lease.token, failure, this.#final());
      return giveBack(current(saved), lease.token, new Date(now().getTime() + backoff(failures)), true);
    });
    await this.#clear(job);
    return job.state === 'failed' ? null : backoff(job.failures);
  }

  /** Removes the files that attempts at the job left. Never rejects: what is left is found by the look at all records. */
  async #clear(job: Job): Promise<void> {
    const { files, log } = this.#options;
    try {
      await removeLeftovers(files, job.id, job);
    } catch (error) {
      log.warn({ exportId: job.id, err: error }, 'files of attempts at an export could not be deleted yet');
    }
  }

  /** Removes this attempt's file, unless the record names it: an answer that it is complete may have been lost. */
  async #discard(): Promise<void> {
    const { jobs, files } = this.#options;
    const { id, lease } = this.#job;
    const name = fileName(id, lease.token);
    const job = await jobs.get(id, new AbortController().signal);
    if (job?.state !== 'complete' || job.file.name !== name) await files.remove(name);
  }

  #final(): Final {
    const { now, ttlMs } = this.#options;
    const finishedAt = now();
    return { finishedAt, expiresAt: new Date(finishedAt.getTime() + ttlMs) };
  }
}

/** The pause before the next attempt, in milliseconds: 1 s, 2 s, 4 s, and so on, up to 60 s. */
function backoff(failures: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 1), LONGEST_BACKOFF_MS);
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'store-unavailable';
}

/** The failure that clients see. It tells nothing about internal errors. */
function failureOf(error: unknown): Failure {
  if (error instanceof AppError) return { code: error.code, detail: error.message };
  if (error instanceof UnfitRowError)
    return {
      code: 'invalid-body',
      detail: `${error.message}. Order it without schema strict, or with other columns.`,
    };
  return { code: 'internal', detail: 'The server failed and has logged the cause.' };
}
