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
import type { Log } from './log.ts';
import { Scan, type ScanOptions } from './scan.ts';

/** Progress is saved, and the lease looked after, so often: several times a lease. Milliseconds. */
const BEAT_MS = 1_000;
const BEATS_A_LEASE = 4;
/** A job that fails so often without coming any further has failed. */
const MOST_FAILURES = 5;
/** What another attempt would meet again. */
const LASTING_FAILURES: ReadonlySet<string> = new Set(['insufficient-storage', 'collection-replaced']);
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 60_000;

export interface AttemptOptions extends ScanOptions {
  readonly jobs: Jobs;
  readonly now: () => Date;
  /** How long nobody else touches a job whose worker is silent. Milliseconds. */
  readonly leaseMs: number;
  /** How long a finished job is kept. Milliseconds. */
  readonly ttlMs: number;
  /** Resolves after so many milliseconds; rejects when the signal is aborted before. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly log: Log;
}

/** The server stops: the job is for somebody else. */
class StoppedError extends Error {}

/** One attempt at a job that was claimed: its scan, beside it the heart beat that saves how far it is, and what becomes of it. */
export class Attempt {
  readonly #job: Running;
  readonly #options: AttemptOptions;
  readonly #scan: Scan;
  readonly #abort = new AbortController();
  #lease: Lease;
  /** What the record says is kept. */
  #saved: Job['kept'];

  constructor(job: Running, options: AttemptOptions) {
    this.#job = job;
    this.#options = options;
    this.#scan = new Scan(job, options);
    this.#lease = job.lease;
    this.#saved = job.kept;
  }

  /** The server stops. */
  stop(): void {
    this.#abort.abort(new StoppedError());
  }

  /** The job was cancelled. */
  drop(): void {
    this.#abort.abort(new LeaseLostError(this.#job.id));
  }

  /** See Work. Rejects when the records cannot be changed: the lease then ends by itself. */
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

  /** Until `ended`. Never rejects: what it meets ends the attempt. */
  async #beat(ended: AbortSignal): Promise<void> {
    while (await this.#pauses(ended)) {
      try {
        await this.#save();
      } catch (error) {
        if (!this.#mayGoOn(error)) this.#abort.abort(error);
      }
    }
  }

  /** Whether the time to the next beat went by before the attempt ended. */
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
    if (before && before.name !== kept?.name) await files.remove(before.name); // the attempt before needs it no more
  }

  /** A store that is away is waited for, as long as nobody else may have taken the job. */
  #mayGoOn(error: unknown): boolean {
    return isUnavailable(error) && this.#lease.until > this.#options.now();
  }

  async #complete(file: FinishedFile): Promise<null> {
    const { id, lease } = this.#job;
    const { jobs, log } = this.#options;
    await jobs.advance(id, (job) => complete(job, lease.token, this.#scan.progress, file, this.#final()));
    log.info({ export: id, rows: file.rows, bytes: file.bytes }, 'an export is complete');
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
    const { identity } = this.#scan.progress; // the next attempt goes on in this collection, or fails
    if (failure.code === 'snapshot-expired') {
      await jobs.advance(id, (job) => goLive({ ...job, identity }, lease.token, now()));
      return 0;
    }
    log[failure.code === 'internal' ? 'error' : 'warn'](
      { export: id, err: error },
      'an attempt at an export failed',
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
    await this.#discard();
    return null;
  }

  /** Removes this attempt's file, and what it went on from, unless the job needs it. */
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

/** Pauses before the next attempt: 1 s, 2 s, 4 s, ... */
function backoff(failures: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 1), LONGEST_BACKOFF_MS);
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'store-unavailable';
}

/** What a client is told of an error: nothing of our own mistakes. */
function failureOf(error: unknown): Failure {
  if (error instanceof AppError) return { code: error.code, detail: error.message };
  return { code: 'internal', detail: 'The server made a mistake, which it has logged.' };
}
