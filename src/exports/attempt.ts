import { AppError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { bindSpan, type Span, type Tracer } from '../base/span.ts';
import { UnfitRowError } from '../rows/arrow/writer.ts';
import type { FileStore } from '../store/files.ts';
import { removeLeftovers } from './file.ts';
import {
  complete,
  fail,
  fileName,
  finalAt,
  giveBack,
  LeaseLostError,
  type FailedJob,
  type Failure,
  type Lease,
  type Progress,
  type QueuedJob,
  type RunningJob,
} from './job.ts';
import type { Jobs } from './jobs.ts';
import { writeFile, type WriteOptions } from './write.ts';

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

/** The interval at which progress is saved and the lease is checked, in milliseconds. */
const BEAT_MS = 1_000;
const BEATS_A_LEASE = 4;

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
  /** Absent or null: no traces are sent. */
  readonly tracer?: Tracer | null;
}

/** Aborts an attempt because the server stops. Another worker takes the job. */
export class StoppedError extends Error {}

/**
 * One attempt at a claimed job: it writes the whole file, beside a heartbeat, and then changes the job's state. Rejects
 * when the record cannot be changed. The lease then expires. `abort` ends it: with StoppedError the job returns to the
 * queue, with LeaseLostError nothing is changed.
 */
export async function attempt(
  job: RunningJob,
  options: AttemptOptions,
  abort: AbortController,
): Promise<void> {
  const { jobs, now, ttlMs, log } = options;
  const { id, lease } = job;
  const { signal } = abort;
  const span = beginSpan(job, options, signal);
  const beat = startBeat(job, options, abort);
  try {
    await removeLeftovers(id, options); // of a worker that died
    const file = await writeFile(job, options, signal, (news) => {
      beat.progress = { ...beat.progress, ...news };
    });
    await beat.end();
    signal.throwIfAborted();
    const progress = { ...beat.progress, rows: file.rows, bytes: file.bytes };
    await jobs.advance(id, lease.token, (held) => complete(held, progress, file, finalAt(now(), ttlMs)));
    span?.end({ 'sluice.rows': file.rows, 'sluice.bytes': file.bytes });
    log.info({ exportId: id, rows: file.rows, bytes: file.bytes }, 'export complete');
  } catch (error) {
    await beat.end();
    const reason: unknown = signal.aborted ? signal.reason : error;
    span?.end({ 'sluice.rows': beat.progress.rows }, faultOf(reason));
    await failed(job, options, reason, beat.progress);
  }
}

/** Begins the span of an attempt, in the trace of the order, whose parts the reads with this signal are. */
function beginSpan(
  { id, request }: RunningJob,
  { tracer }: AttemptOptions,
  signal: AbortSignal,
): Span | null {
  const span =
    tracer?.begin(request.traceparent, () => ({
      name: `export ${request.resource}`,
      kind: 'internal',
      facts: { 'sluice.export.id': id, 'sluice.resource': request.resource, 'sluice.format': request.format },
    })) ?? null;
  if (span) bindSpan(signal, span);
  return span;
}

/** The kind of what ended an attempt. */
function faultOf(error: unknown): string {
  if (error instanceof LeaseLostError) return 'lease-lost';
  return error instanceof StoppedError ? 'stopped' : failureOf(error).code;
}

async function failed(
  { id, lease: { token } }: RunningJob,
  { jobs, files, now, ttlMs, log }: AttemptOptions,
  error: unknown,
  { identity }: Progress,
): Promise<void> {
  if (error instanceof LeaseLostError) return;
  const isStopped = error instanceof StoppedError;
  const failure = failureOf(error);
  if (!isStopped)
    log[failure.code === 'internal' ? 'error' : 'warn'](
      { export: id, err: error },
      'attempt at an export failed',
    );
  if (failure.code === 'insufficient-storage') await makeRoom(files, fileName(id, token));
  await jobs.advance<QueuedJob | FailedJob>(id, token, (job) => {
    // The next attempt reads the collection that this one read, or fails.
    const held = { ...job, progress: { ...job.progress, identity } };
    if (isStopped) return giveBack(held, now());
    const failures = job.failures + 1;
    return LASTING_FAILURES.has(failure.code) || failures >= MOST_FAILURES
      ? fail(held, failure, finalAt(now(), ttlMs))
      : giveBack(held, new Date(now().getTime() + backoff(failures)), failures);
  });
}

/** Makes room for the record of the failure. A later look finds what cannot be removed now. */
async function makeRoom(files: FileStore, name: string): Promise<void> {
  try {
    await files.remove(name);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
  }
}

/** The pause before the next attempt, in milliseconds: 1 s, 2 s, 4 s, and so on, up to 60 s. */
function backoff(failures: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 1), LONGEST_BACKOFF_MS);
}

/** The failure that clients see. It says nothing about internal errors. */
function failureOf(error: unknown): Failure {
  if (error instanceof AppError) return { code: error.code, detail: error.message };
  if (error instanceof UnfitRowError)
    return {
      code: 'invalid-body',
      detail: `${error.message}. Order it without schema strict, or with other columns.`,
    };
  return { code: 'internal', detail: 'The server failed and has logged the cause.' };
}

/**
 * Renews the lease of a claimed job and saves what is reported in `progress`. A failed save aborts the attempt with its
 * error, except while the store is unavailable and the lease holds: no other process can then have the job.
 */
function startBeat(job: RunningJob, { jobs, now, leaseMs, pause }: AttemptOptions, attempt: AbortController) {
  const ended = new AbortController();
  let { lease, progress: saved } = job;

  const save = async (progress: Progress): Promise<void> => {
    if (progress === saved && lease.until.getTime() - now().getTime() > leaseMs / 2) return;
    const renewed: Lease = { token: lease.token, until: new Date(now().getTime() + leaseMs) };
    await jobs.advance(job.id, lease.token, (held) => ({ ...held, progress, lease: renewed }));
    lease = renewed;
    saved = progress;
  };
  const pauses = (): Promise<boolean> =>
    pause(Math.min(BEAT_MS, leaseMs / BEATS_A_LEASE), ended.signal).then(
      () => true,
      () => false,
    );
  const run = async (): Promise<void> => {
    while (await pauses())
      try {
        await save(beat.progress);
      } catch (error) {
        const isAway = error instanceof AppError && error.code === 'store-unavailable';
        if (!isAway || lease.until <= now()) attempt.abort(error);
      }
  };

  const beat = {
    progress: saved,
    /** Stops the heartbeat. Resolves when its last save has ended. */
    end: async (): Promise<void> => {
      ended.abort();
      await running;
    },
  };
  const running = run();
  return beat;
}
