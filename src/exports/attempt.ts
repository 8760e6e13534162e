import { AppError } from '../errors.ts';
import {
  advance,
  complete,
  fail,
  fileName,
  filesOf,
  giveBack,
  goLive,
  LeaseLostError,
  type Failure,
  type FinishedFile,
  type Job,
  type Lease,
  type Running,
} from './job.ts';
import type { Jobs } from './jobs.ts';
import { UnfitRowError } from '../rows/arrow/writer.ts';
import { removeLeftovers } from './file.ts';
import type { Log } from '../log.ts';
import { Scan, type ScanOptions } from './scan.ts';

/**
 * The interval at which progress is saved and the lease is checked, in milliseconds. A lease lasts several
 * intervals.
 */
const BEAT_MS = 1_000;
const BEATS_A_LEASE = 4;
/** A job fails for good after this many failures without progress. */
const MOST_FAILURES = 5;
/** Failures that every further attempt would meet again. */
const LASTING_FAILURES: ReadonlySet<string> = new Set([
  'insufficient-storage',
  'collection-replaced',
  'invalid-body',
]);
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 60_000;

export interface AttemptOptions extends ScanOptions {
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
 * One attempt at a claimed job: its scan, the heartbeat beside it that saves progress, and the job's state
 * afterwards.
 */
export class Attempt {
  readonly #job: Running;
  readonly #options: AttemptOptions;
  readonly #scan: Scan;
  readonly #abort = new AbortController();
  #lease: Lease;
  /** The kept part of the file, as the record has it. */
  #saved: Job['kept'];

  constructor(job: Running, options: AttemptOptions) {
    this.#job = job;
    this.#options = options;
    this.#scan = new Scan(job, options);
    this.#lease = job.lease;
    this.#saved = job.kept;
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
      const [file] = await Promise.all([this.#scan.run(signal), this.#scan.estimate(signal)]);
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

  /** Saves progress until `ended` is aborted. Never rejects: an error ends the attempt. */
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
    const { jobs, now, leaseMs, files } = this.#options;
    const progress = await this.#scan.sync();
    const { kept } = progress;
    const isFurther = kept !== null && kept !== this.#saved;
    const left = this.#lease.until.getTime() - now().getTime();
    if (!isFurther && left > leaseMs / 2) return;
    const lease = { token: this.#lease.token, until: new Date(now().getTime() + leaseMs) };
    await jobs.advance(this.#job.id, (job) => advance(job, lease, progress));
    this.#lease = lease;
    const before = this.#saved;
    this.#saved = kept;
    if (before && before.name !== kept?.name) await files.remove(before.name); // no longer needed
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
    const job = await jobs.advance(id, (current) =>
      complete(current, lease.token, this.#scan.progress, file, this.#final()),
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
    if (error instanceof StoppedError) {
      await jobs.advance(id, (job) => giveBack(job, lease.token, now(), false));
      return 0;
    }
    const failure = failureOf(error);
    const { identity } = this.#scan.progress; // the next attempt continues in this collection, or fails
    if (failure.code === 'snapshot-expired') {
      await jobs.advance(id, (job) => goLive({ ...job, identity }, lease.token, now()));
      return 0;
    }
    log[failure.code === 'internal' ? 'error' : 'warn'](
      { export: id, err: error },
      'attempt at an export failed',
    );
    if (failure.code === 'insufficient-storage') await files.remove(fileName(id, lease.token)); // makes room for the record
    const job = await jobs.advance(id, (saved) => {
      const current = { ...saved, identity };
      const failures = current.failures + 1;
      if (LASTING_FAILURES.has(failure.code) || failures >= MOST_FAILURES)
        return fail(current, lease.token, failure, this.#final());
      return giveBack(current, lease.token, new Date(now().getTime() + backoff(failures)), true);
    });
    if (job.state !== 'failed') return backoff(job.failures);
    await this.#clear(job);
    return null;
  }

  /** Removes the files that all attempts at a final job left. Never rejects, because a failure does not change the job. */
  async #clear(job: Job): Promise<void> {
    const { files, log } = this.#options;
    try {
      await removeLeftovers(files, job.id, job);
    } catch (error) {
      log.warn(
        { exportId: job.id, err: error },
        'files of earlier attempts at an export could not be deleted yet',
      );
    }
  }

  /** Removes this attempt's file and the file it continued from, unless the job still needs them. */
  async #discard(): Promise<void> {
    const { jobs, files } = this.#options;
    const job = await jobs.get(this.#job.id, new AbortController().signal);
    const needed = job ? filesOf(job) : [];
    const names = [fileName(this.#job.id, this.#job.lease.token), ...(this.#saved ? [this.#saved.name] : [])];
    for (const name of new Set(names)) if (!needed.includes(name)) await files.remove(name);
  }

  #final(): { readonly finishedAt: Date; readonly expiresAt: Date } {
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
