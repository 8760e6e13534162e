import { randomBytes } from 'node:crypto';
import { AppError } from '../errors.ts';
import { makeBookmark } from '../store/bookmark.ts';
import { BSON } from '../store/bson.ts';
import { chain, FIRST_BATCH } from '../store/chain.ts';
import { documentOf, rowsOf } from '../store/batch.ts';
import type { Plan, RecordStore } from '../store/store.ts';
import { atOnce } from '../stream/at-once.ts';
import { isExpired, LeaseLostError, newJob, type ExportRequest, type Job } from './job.ts';

const BY_ID: Plan = { order: 'id', direction: 1 };
const ID = /^[0-9a-f]{32}$/;
/** Exports end when they end, or are removed: a pace for asking. Seconds. */
const RETRY_SECONDS = 30;

export interface JobsOptions {
  readonly records: RecordStore;
  /** Exports one client may have, in whatever state. */
  readonly perClient: number;
  readonly now: () => Date;
}

/** The records of exports: the only place where the state of a job is. */
export class Jobs {
  readonly #options: JobsOptions;
  /** Orders are written down one after the other, so that each sees those before it. */
  readonly #ordering = atOnce(1);

  constructor(options: JobsOptions) {
    this.#options = options;
  }

  /** AppError `too-many-exports` when the client has its share. Of orders that several processes take at the very same time a few more may pass. */
  create(client: string, request: ExportRequest, signal: AbortSignal): Promise<Job> {
    const { perClient, records, now } = this.#options;
    return this.#ordering(async () => {
      if ((await this.listOf(client, signal)).length >= perClient) throw tooMany(perClient);
      const job = newJob(randomBytes(16).toString('hex'), client, request, now());
      await records.change(job.id, () => toRow(job));
      return job;
    });
  }

  /** null when there is none, or its time is over. */
  async get(id: string, signal: AbortSignal): Promise<Job | null> {
    if (!ID.test(id)) return null;
    const batch = await this.#options.records.get(makeBookmark({ _id: id }), signal);
    if (!batch) return null;
    try {
      const job = fromRow(documentOf(batch));
      return isExpired(job, this.#options.now()) ? null : job;
    } finally {
      batch.release();
    }
  }

  /** A client's exports, the newest first. */
  async listOf(client: string, signal: AbortSignal): Promise<Job[]> {
    const now = this.#options.now();
    const own = (await this.all(signal)).filter((job) => job.client === client && !isExpired(job, now));
    return own.sort((a, b) => b.createdAt.getTime() - a.createdAt.getTime());
  }

  /** All that there are, also those whose time is over. */
  async all(signal: AbortSignal): Promise<Job[]> {
    const { records } = this.#options;
    const jobs: Job[] = [];
    const first = await records.read(BY_ID, {}, FIRST_BATCH, signal);
    for await (const batch of chain(records, BY_ID, first, Infinity, signal)) {
      try {
        for (const row of rowsOf(batch)) jobs.push(fromRow(row));
      } finally {
        batch.release();
      }
    }
    return jobs;
  }

  /**
   * Changes a job in one atomic step: `step` may be called several times, each time with the job as it is then; null removes
   * it, the job itself leaves it as it is. Resolves with the job before and after; null: there is none.
   */
  async change(
    id: string,
    step: (job: Job) => Job | null,
  ): Promise<{ before: Job | null; after: Job | null }> {
    const { before, after } = await this.#options.records.change(id, (current) => {
      if (!current) return 'keep';
      const job = fromRow(current);
      const next = step(job);
      if (next === job) return 'keep';
      return next && toRow(next);
    });
    return { before: before && fromRow(before), after: after && fromRow(after) };
  }

  /** A step that only whoever holds the job's lease can make. Rejects with LeaseLostError also when the job is gone. */
  async advance<J extends Job>(id: string, step: (job: Job) => J): Promise<J> {
    const { after } = await this.change(id, step);
    if (!after) throw new LeaseLostError(id);
    return after as J; // what `step` made, as it was stored
  }
}

/** The BSON document of a job. */
function toRow({ id, ...job }: Job): Uint8Array {
  return BSON.serialize({ _id: id, ...job });
}

function fromRow(row: Uint8Array): Job {
  const own = Buffer.from(row); // what BSON calls a buffer is a view of what it reads
  const { _id, ...job } = BSON.deserialize(own, { promoteBuffers: true });
  const stored = { id: _id as string, identity: null, ...job } as Job; // 0.1 wrote no identity
  return { ...stored, request: { ...stored.request, ...digitsOf(stored.request) } };
}

/** Version 0.1 stored the bounds of the price as numbers. */
function digitsOf(
  request: Readonly<Record<string, unknown>>,
): Pick<ExportRequest, 'min_price' | 'max_price'> {
  const bounds = ['min_price', 'max_price'].filter((name) => typeof request[name] === 'number');
  return Object.fromEntries(bounds.map((name) => [name, String(request[name])]));
}

function tooMany(perClient: number): AppError {
  return new AppError(
    'too-many-exports',
    `EXPORT_LIMIT lets a client have ${perClient} exports, finished ones included, and there are. Remove one with DELETE, or wait until one expires.`,
    { headers: { 'retry-after': String(RETRY_SECONDS) } },
  );
}
