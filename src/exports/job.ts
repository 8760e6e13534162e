import type { ProblemCode } from '../errors.ts';
import type { Bookmark, Identity } from '../store/bookmark.ts';
import type { ExportOrder, State } from './export.ts';

/** What is ordered, with every default filled in. */
export type ExportRequest = ExportOrder & Required<Pick<ExportOrder, 'sort' | 'format' | 'compression'>>;

/** How much of the file is on disk, ending with a whole segment: where another attempt goes on. */
export interface Kept {
  /** The unfinished file's name. */
  readonly name: string;
  readonly bytes: number;
  readonly crc32: number;
  readonly rows: number;
  /** The last row's. */
  readonly bookmark: Bookmark;
}

/** The right to work on a job, until a time. It is renewed; who has another token than the job's has lost it. */
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

/** Of which time the rows are: that of each read, or one point in time (as digits); undecided until the work begins. */
export type Time = 'undecided' | 'live' | `${bigint}`;

interface Common {
  /** 128 random bits in hexadecimal digits. */
  readonly id: string;
  /** Who ordered it: a key's name, or an address. */
  readonly client: string;
  readonly request: ExportRequest;
  readonly createdAt: Date;
  readonly time: Time;
  /** The collection that work began in: it goes on in no other. null until then, and where collections have no identity. */
  readonly identity: Identity | null;
  readonly estimatedRows: number | null;
  /** Of CSV, once they are known: they must not change when the work is taken up again. */
  readonly columns: readonly string[] | null;
  readonly kept: Kept | null;
  /** How often work on it has failed since it last came further. */
  readonly failures: number;
}

/** What an attempt has found out and done. */
export type Progress = Pick<Common, 'time' | 'identity' | 'estimatedRows' | 'columns' | 'kept'>;

interface Final {
  readonly finishedAt: Date;
  /** When record and file are removed. */
  readonly expiresAt: Date;
}

export type Queued = Common & { readonly state: 'queued'; readonly notBefore: Date };
export type Running = Common & { readonly state: 'running'; readonly lease: Lease };
export type Complete = Common & Final & { readonly state: 'complete'; readonly file: FinishedFile };
export type Failed = Common & Final & { readonly state: 'failed'; readonly failure: Failure };
export type Cancelled = Common & Final & { readonly state: 'cancelled' };
export type Job = Queued | Running | Complete | Failed | Cancelled;

/** Which state may follow which. A final one is followed by the record's removal only. */
export const NEXT: Readonly<Record<State, readonly State[]>> = {
  queued: ['running', 'cancelled'],
  running: ['running', 'queued', 'complete', 'failed', 'cancelled'],
  complete: [],
  failed: [],
  cancelled: [],
};

/** Somebody else works on the job now, or it was cancelled or removed: this attempt is over and must change nothing. */
export class LeaseLostError extends Error {
  constructor(id: string) {
    super(`the lease of export ${id} is lost`);
    this.name = 'LeaseLostError';
  }
}

export function newJob(id: string, client: string, request: ExportRequest, now: Date): Queued {
  return {
    id,
    client,
    request,
    createdAt: now,
    time: 'undecided',
    identity: null,
    estimatedRows: null,
    columns: null,
    kept: null,
    failures: 0,
    state: 'queued',
    notBefore: now,
  };
}

/** Milliseconds until somebody may work on the job: 0 or less when it is due; null when it is finished. */
export function dueIn(job: Job, now: Date): number | null {
  if (job.state === 'queued') return job.notBefore.getTime() - now.getTime();
  if (job.state === 'running') return job.lease.until.getTime() - now.getTime();
  return null;
}

export function isExpired(job: Job, now: Date): boolean {
  return 'expiresAt' in job && job.expiresAt <= now;
}

/** The job taken by whoever has this token; it must be due. */
export function claim(job: Queued | Running, lease: Lease): Running {
  return { ...common(job), state: 'running', lease };
}

/** Renews the lease and takes down how far the work is. */
export function advance(job: Job, lease: Lease, done: Progress): Running {
  const own = ownedBy(job, lease.token);
  const further = (done.kept?.rows ?? 0) > (own.kept?.rows ?? 0);
  return { ...own, ...done, ...(further && { failures: 0 }), lease };
}

/** Back to the queue: by a stop, or after a failure, which is counted. */
export function giveBack(job: Job, token: string, notBefore: Date, failed: boolean): Queued {
  const own = ownedBy(job, token);
  return { ...common(own), failures: own.failures + (failed ? 1 : 0), state: 'queued', notBefore };
}

/** Back to the queue, since its point in time is gone: the rest is read as it is. */
export function goLive(job: Job, token: string, now: Date): Queued {
  return { ...giveBack(job, token, now, false), time: 'live' };
}

export function complete(
  job: Job,
  token: string,
  done: Progress,
  file: FinishedFile,
  final: Final,
): Complete {
  return { ...common(ownedBy(job, token)), ...done, ...final, kept: null, state: 'complete', file };
}

export function fail(job: Job, token: string, failure: Failure, final: Final): Failed {
  return { ...common(ownedBy(job, token)), ...final, kept: null, state: 'failed', failure };
}

/** A job that is on its way, stopped for good; its worker finds that its lease is lost. */
export function cancel(job: Queued | Running, final: Final): Cancelled {
  return { ...common(job), ...final, kept: null, state: 'cancelled' };
}

export function isFinal(job: Job): job is Complete | Failed | Cancelled {
  return NEXT[job.state].length === 0;
}

/** The names of the files a job still needs. */
export function filesOf(job: Job): readonly string[] {
  if (job.state === 'complete') return [job.file.name];
  const kept = job.kept ? [job.kept.name] : [];
  return job.state === 'running' ? [fileName(job.id, job.lease.token), ...kept] : kept;
}

/** Each attempt writes to a file of its own: one that has lost its lease without knowing can spoil nothing. */
export function fileName(id: string, token: string): string {
  return `${id}.${token}`;
}

function ownedBy(job: Job, token: string): Running {
  if (job.state === 'running' && job.lease.token === token) return job;
  throw new LeaseLostError(job.id);
}

function common(job: Job): Common {
  const { id, client, request, createdAt, time, identity, estimatedRows, columns, kept, failures } = job;
  return { id, client, request, createdAt, time, identity, estimatedRows, columns, kept, failures };
}
