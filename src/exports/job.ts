import type { Scope } from '../access/rights.ts';
import type { ProblemCode } from '../base/problems.ts';
import type { Identity } from '../store/bookmark.ts';
import type { Compression } from '../pipeline/pieces.ts';

/** An order as stored: a stream's query, and what only a file has. */
export interface ExportRequest {
  readonly resource: string;
  /** The query of the stream whose rows the file has, as text and without its format. The sort is in it. */
  readonly query: string;
  readonly format: string;
  readonly compression: Compression;
  /** The part of the resource that the client's key opens. Absent: all of it. */
  readonly scope?: Scope;
  /** The trace that the order belongs to. Absent: none, or the server sends no traces. */
  readonly traceparent?: string;
}

/** The exclusive right to work on a job until a time. The holder renews it. An attempt with another token lost it. */
export interface Lease {
  readonly token: string;
  readonly until: Date;
}

export interface FinishedFile {
  readonly name: string;
  readonly bytes: number;
  readonly rows: number;
  readonly sha256: string;
  readonly crc32: number;
}

export interface Failure {
  readonly code: ProblemCode;
  readonly detail: string;
}

/** What an attempt has determined and written so far. */
export interface Progress {
  /** The time that the rows belong to: that of each read, or one point in time. */
  readonly time: 'undecided' | 'live' | 'snapshot';
  /** The collection of the first attempt, and of all others. null until then, or if collections have no identity. */
  readonly identity: Identity | null;
  /** What the resource shows of a row, as `shownAs` writes it. Absent until the work begins. */
  readonly shown?: string;
  /** The cursor from which changes follow, before the first read. null until the work begins, or without changes. */
  readonly changes: string | null;
  readonly estimatedRows: number | null;
  readonly rows: number;
  readonly bytes: number;
}

const BEGINNING = { time: 'undecided', changes: null, rows: 0, bytes: 0 } as const;

interface JobFields {
  /** 32 random hexadecimal digits. */
  readonly id: string;
  /** The client that ordered it: a key's name, or a network address. */
  readonly client: string;
  readonly request: ExportRequest;
  readonly createdAt: Date;
  readonly progress: Progress;
  readonly failures: number;
}

interface EndOfJob {
  readonly finishedAt: Date;
  /** The time when the record and the file are removed. */
  readonly expiresAt: Date;
}

/** The end of a job that is kept for `ttlMs` milliseconds. */
export function finalAt(finishedAt: Date, ttlMs: number): EndOfJob {
  return { finishedAt, expiresAt: new Date(finishedAt.getTime() + ttlMs) };
}

export type QueuedJob = JobFields & { readonly state: 'queued'; readonly notBefore: Date };
export type RunningJob = JobFields & { readonly state: 'running'; readonly lease: Lease };
export type CompleteJob = JobFields & EndOfJob & { readonly state: 'complete'; readonly file: FinishedFile };
export type FailedJob = JobFields & EndOfJob & { readonly state: 'failed'; readonly failure: Failure };
type CancelledJob = JobFields & EndOfJob & { readonly state: 'cancelled' };
export type Job = QueuedJob | RunningJob | CompleteJob | FailedJob | CancelledJob;

/** Another attempt has the job, or it was cancelled or removed. This attempt is over and must change nothing. */
export class LeaseLostError extends Error {
  constructor(id: string) {
    super(`the lease of export ${id} is lost`);
    this.name = 'LeaseLostError';
  }
}

export function newJob(id: string, client: string, request: ExportRequest, now: Date): QueuedJob {
  const progress = { ...BEGINNING, identity: null, estimatedRows: null };
  const common = { id, client, request, createdAt: now, progress, failures: 0 };
  return { ...common, state: 'queued', notBefore: now };
}

/** Milliseconds until an attempt may claim the job: 0 or less when it is due, null when it is final. */
export function dueIn(job: Job, now: Date): number | null {
  if (isFinal(job)) return null;
  return (job.state === 'queued' ? job.notBefore : job.lease.until).getTime() - now.getTime();
}

export function isExpired(job: Job, now: Date): boolean {
  return 'expiresAt' in job && job.expiresAt <= now;
}

/** The job as claimed with this lease. The job must be due. The attempt begins with the first row. */
export function claim(job: Job, lease: Lease): RunningJob {
  const { identity, estimatedRows } = job.progress;
  return { ...common(job), progress: { ...BEGINNING, identity, estimatedRows }, state: 'running', lease };
}

/** The job as its worker holds it. Throws LeaseLostError when another one does, or none. */
export function ownedBy(job: Job, token: string): RunningJob {
  if (job.state === 'running' && job.lease.token === token) return job;
  throw new LeaseLostError(job.id);
}

/** Returns the job to the queue, after a stop or after a failed attempt. */
export function giveBack(job: RunningJob, notBefore: Date, failures = job.failures): QueuedJob {
  return { ...common(job), failures, state: 'queued', notBefore };
}

export function complete(
  job: RunningJob,
  progress: Progress,
  file: FinishedFile,
  final: EndOfJob,
): CompleteJob {
  return { ...common(job), progress, ...final, state: 'complete', file };
}

export function fail(job: Job, failure: Failure, { finishedAt, expiresAt }: EndOfJob): FailedJob {
  return { ...common(job), finishedAt, expiresAt, state: 'failed', failure };
}

/** Fails a job whose file is missing or damaged. Other jobs stay as they are. */
export function lose(job: Job): Job {
  if (job.state !== 'complete') return job;
  const detail = 'The file of this export is missing or damaged. Create a new export.';
  return fail(job, { code: 'export-file-lost', detail }, job);
}

/** Cancels a queued or running job for good. Its worker finds that its lease is lost. */
export function cancel(job: QueuedJob | RunningJob, final: EndOfJob): CancelledJob {
  return { ...common(job), ...final, state: 'cancelled' };
}

export function isFinal(job: Job): job is CompleteJob | FailedJob | CancelledJob {
  return job.state !== 'queued' && job.state !== 'running';
}

/** The names of the files that a job still needs. */
export function filesOf(job: Job): readonly string[] {
  if (job.state === 'complete') return [job.file.name];
  return job.state === 'running' ? [fileName(job.id, job.lease.token)] : [];
}

/** Each attempt has a file of its own, so that one that lost its lease without noticing damages nothing. */
export function fileName(id: string, token: string): string {
  return `${id}.${token}`;
}

function common({ id, client, request, createdAt, progress, failures }: Job): JobFields {
  return { id, client, request, createdAt, progress, failures };
}
