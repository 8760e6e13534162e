import type { Scope } from '../access/rights.ts';
import type { ProblemCode } from '../problems.ts';
import type { Bookmark, Identity } from '../store/bookmark.ts';
import type { BodySums } from '../stream/arrow-encoder.ts';
import type { ExportOrder, State } from './export.ts';

/** What an order has beside the choices of its client. */
interface Ordered {
  /** The part of the resource that the client's key opens. Absent: all of it. */
  readonly scope?: Scope;
}

/** An order of items with every default filled in. */
export type ItemsRequest = ExportOrder &
  Required<Pick<ExportOrder, 'sort' | 'format' | 'compression'>> &
  Ordered;

/** An order of another resource with every default filled in. */
export interface ResourceRequest
  extends Pick<ExportOrder, 'fields' | 'safe' | 'columns' | 'schema'>, Ordered {
  readonly resource: string;
  /** The filters and bounds: names and texts as in the query of a stream. */
  readonly filters: readonly (readonly [name: string, text: string])[];
  readonly sort: string;
  /** The BSON types that the texts were read as when the export was ordered (see pages/value-types.ts). */
  readonly types: Uint8Array;
  readonly format: ItemsRequest['format'];
  readonly compression: ItemsRequest['compression'];
}

/** An order as stored. One of items may lack the resource. */
export type ExportRequest = ItemsRequest | ResourceRequest;

/** The resource that an order without one means, as version 0.1 stored them. */
export const ITEMS = 'items';

/** The name of the resource that is exported. */
export function resourceOf({ resource = ITEMS }: Pick<ExportRequest, 'resource'>): string {
  return resource;
}

/**
 * The part of the file that is on disk. It ends with a whole segment, and another attempt continues from
 * there.
 */
export interface Kept {
  /** The name of the unfinished file. */
  readonly name: string;
  readonly bytes: number;
  readonly crc32: number;
  readonly rows: number;
  /** The bookmark of the last row. */
  readonly bookmark: Bookmark;
  /** Arrow only: what the proof of the next record batch goes on from. */
  readonly bodies?: BodySums;
}

/**
 * The exclusive right to work on a job until a given time. The holder renews it. An attempt whose token
 * differs from the job's token has lost the lease.
 */
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

/**
 * The time the rows belong to: `live` (the time of each read), one point in time (as digits), or `undecided`
 * until the work begins.
 */
export type Time = 'undecided' | 'live' | `${bigint}`;

/** A place in the history of a set, as a record holds it. */
export interface StoredStart {
  /** As clients carry it. */
  readonly cursor: string;
  /** The time that reads must see, as digits. null: the store has no such time, or the rows are a snapshot. */
  readonly since: `${bigint}` | null;
}

interface Common {
  /** 128 random bits in hexadecimal digits. */
  readonly id: string;
  /** The client that ordered it: a key's name, or a network address. */
  readonly client: string;
  readonly request: ExportRequest;
  readonly createdAt: Date;
  readonly time: Time;
  /**
   * The collection in which the work began. The job continues in no other collection. null until the work
   * begins, and in a store whose collections have no identity.
   */
  readonly identity: Identity | null;
  /**
   * From where the changes of the rows follow: a place before the first read of the first row in the file. null until
   * the work begins, and where changes are not told.
   */
  readonly changes: StoredStart | null;
  readonly estimatedRows: number | null;
  /**
   * The columns of a table, once they are known: their names (CSV), or each in the form of the parameter `columns`
   * (Arrow and Parquet). They must not change when another attempt continues the work.
   */
  readonly columns: readonly string[] | null;
  readonly kept: Kept | null;
  /** The number of failed attempts since the job last made progress. */
  readonly failures: number;
}

/** What an attempt has determined and written so far. */
export type Progress = Pick<Common, 'time' | 'identity' | 'changes' | 'estimatedRows' | 'columns' | 'kept'>;

interface Final {
  readonly finishedAt: Date;
  /** The time when the record and the file are removed. */
  readonly expiresAt: Date;
}

export type Queued = Common & { readonly state: 'queued'; readonly notBefore: Date };
export type Running = Common & { readonly state: 'running'; readonly lease: Lease };
export type Complete = Common & Final & { readonly state: 'complete'; readonly file: FinishedFile };
export type Failed = Common & Final & { readonly state: 'failed'; readonly failure: Failure };
export type Cancelled = Common & Final & { readonly state: 'cancelled' };
export type Job = Queued | Running | Complete | Failed | Cancelled;

/** The states that may follow each state. A complete job fails when its file is lost. */
export const NEXT: Readonly<Record<State, readonly State[]>> = {
  queued: ['running', 'cancelled'],
  running: ['running', 'queued', 'complete', 'failed', 'cancelled'],
  complete: ['failed'],
  failed: [],
  cancelled: [],
};

/**
 * Another attempt works on the job now, or the job was cancelled or removed. This attempt is over and must
 * change nothing.
 */
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
    changes: null,
    estimatedRows: null,
    columns: null,
    kept: null,
    failures: 0,
    state: 'queued',
    notBefore: now,
  };
}

/** Milliseconds until an attempt may claim the job: 0 or less when it is due, null when it is finished. */
export function dueIn(job: Job, now: Date): number | null {
  if (job.state === 'queued') return job.notBefore.getTime() - now.getTime();
  if (job.state === 'running') return job.lease.until.getTime() - now.getTime();
  return null;
}

export function isExpired(job: Job, now: Date): boolean {
  return 'expiresAt' in job && job.expiresAt <= now;
}

/** The job as claimed with this lease. The job must be due. */
export function claim(job: Queued | Running, lease: Lease): Running {
  return { ...common(job), state: 'running', lease };
}

/** Renews the lease and records the progress. Throws LeaseLostError. */
export function advance(job: Job, lease: Lease, done: Progress): Running {
  const own = ownedBy(job, lease.token);
  const further = (done.kept?.rows ?? 0) > (own.kept?.rows ?? 0);
  return { ...own, ...done, ...(further && { failures: 0 }), lease };
}

/**
 * Returns the job to the queue, after a stop or after a failure. Only a failure is counted. Throws
 * LeaseLostError.
 */
export function giveBack(job: Job, token: string, notBefore: Date, failed: boolean): Queued {
  const own = ownedBy(job, token);
  return { ...common(own), failures: own.failures + (failed ? 1 : 0), state: 'queued', notBefore };
}

/**
 * Returns the job to the queue because its point in time has expired. The next attempt reads the remaining
 * rows live.
 */
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

/** Fails a job whose file is missing or damaged. Other jobs stay as they are. */
export function lose(job: Job): Job {
  if (job.state !== 'complete') return job;
  const { finishedAt, expiresAt } = job;
  const detail = 'The file of this export is missing or damaged. Create a new export.';
  const failure: Failure = { code: 'export-file-lost', detail };
  return { ...common(job), finishedAt, expiresAt, state: 'failed', failure };
}

/** Cancels a queued or running job for good. Its worker finds that its lease is lost. */
export function cancel(job: Queued | Running, final: Final): Cancelled {
  return { ...common(job), ...final, kept: null, state: 'cancelled' };
}

export function isFinal(job: Job): job is Complete | Failed | Cancelled {
  return job.state !== 'queued' && job.state !== 'running';
}

/** The names of the files that a job still needs. */
export function filesOf(job: Job): readonly string[] {
  if (job.state === 'complete') return [job.file.name];
  const kept = job.kept ? [job.kept.name] : [];
  return job.state === 'running' ? [fileName(job.id, job.lease.token), ...kept] : kept;
}

/**
 * Each attempt writes to a file of its own. An attempt that lost its lease without noticing can then damage
 * nothing.
 */
export function fileName(id: string, token: string): string {
  return `${id}.${token}`;
}

function ownedBy(job: Job, token: string): Running {
  if (job.state === 'running' && job.lease.token === token) return job;
  throw new LeaseLostError(job.id);
}

function common(job: Job): Common {
  const { id, client, request, createdAt, time, identity, changes, estimatedRows, columns, kept, failures } =
    job;
  return { id, client, request, createdAt, time, identity, changes, estimatedRows, columns, kept, failures };
}
