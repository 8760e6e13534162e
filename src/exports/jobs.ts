import { randomBytes } from 'node:crypto';
import type { Client } from '../access/admission.ts';
import { AppError } from '../base/errors.ts';
import { quote } from '../input/query.ts';
import { documentOf, rowsOf } from '../store/batch.ts';
import { makeBookmark } from '../store/bookmark.ts';
import { BSON } from '../store/values/bson.ts';
import type { RecordDeclaration, Records } from '../store/records.ts';
import { readRow } from '../store/turns/read-row.ts';
import type { Plan } from '../store/store.ts';
import { chain, FIRST_BATCH } from '../pipeline/chain.ts';
import { TurnsByKey } from '../store/turns/work-turns.ts';
import { Ends } from './ends.ts';
import {
  isExpired,
  isFinal,
  LeaseLostError,
  newJob,
  ownedBy,
  type ExportRequest,
  type Job,
  type RunningJob,
} from './job.ts';

const BY_ID: Plan = { sort: '_id', direction: 1 };
const ID = /^[0-9a-f]{32}$/;

export const EXPORTS: RecordDeclaration = {
  name: 'exports',
  collection: 'exports',
  indexes: [['client', 'createdAt']],
  validator: {
    $jsonSchema: {
      bsonType: 'object',
      required: ['_id', 'state', 'request', 'createdAt'],
      properties: {
        _id: { bsonType: 'string' },
        state: { bsonType: 'string' },
        request: { bsonType: 'object' },
        createdAt: { bsonType: 'date' },
      },
    },
  },
};

interface JobsOptions {
  readonly records: Records;
  /** The number of exports that one client may have, in all states together. */
  readonly perClient: () => number;
  readonly now: () => Date;
}

/** The records of exports, which are the only place that holds the state of a job. */
export class Jobs {
  readonly #options: JobsOptions;
  /** Serializes the orders of each client, so that each one sees those before it. */
  readonly #ordering = new TurnsByKey();
  /** Those who wait for the end of a job. */
  readonly ends = new Ends(async (id, signal) => {
    const job = await this.get(id, signal);
    return job === null || isFinal(job);
  });

  constructor(options: JobsOptions) {
    this.#options = options;
  }

  /**
   * Reads an order, one of a client at a time, and makes a job of it. AppError `too-many-exports` before that, at `perClient`
   * exports of a client, which several processes at once may exceed.
   */
  create(client: string, read: () => Promise<ExportRequest>, signal: AbortSignal): Promise<Job> {
    const { records, now } = this.#options;
    const perClient = this.#options.perClient();
    return this.#ordering.take(client, async () => {
      if ((await this.listOf(client, signal)).length >= perClient) throw tooMany(perClient);
      const job = newJob(randomBytes(16).toString('hex'), client, await read(), now());
      await records.change(job.id, () => toRow(job));
      return job;
    });
  }

  /** The job with this id; null when there is none, or when it has expired. */
  async get(id: string, signal: AbortSignal): Promise<Job | null> {
    const row = ID.test(id) ? await this.#read(id, signal) : null;
    const job = row && jobOf(row);
    return job && isExpired(job, this.#options.now()) ? null : job;
  }

  /** The job. AppError `not-found` when there is none or it has expired, or, for a key, when it is another client's. */
  async find(id: string, client: Pick<Client, 'hasKey' | 'owner'>, signal: AbortSignal): Promise<Job> {
    const job = await this.get(id, signal);
    if (job && (!client.hasKey || job.client === client.owner)) return job;
    throw noSuchExport(id);
  }

  /** The exports of a client, newest first, without expired ones. */
  async listOf(client: string, signal: AbortSignal): Promise<Job[]> {
    const plan: Plan = { sort: 'createdAt', direction: -1, equals: [{ path: 'client', value: client }] };
    const jobs: Job[] = [];
    for await (const fields of this.#rows(plan, signal)) {
      const job = jobOf(fields);
      if (job && !isExpired(job, this.#options.now())) jobs.push(job);
    }
    return jobs;
  }

  /** An id of this store, the same for all processes that share it. null: it may have none before its first export. */
  async storeId(): Promise<string | null> {
    return (await this.#options.records.describe(new AbortController().signal)).identity ?? null;
  }

  /** All exports, also expired ones. Removes records of an earlier release. The cost grows with their number. */
  async all(signal: AbortSignal): Promise<readonly Job[]> {
    const jobs: Job[] = [];
    for await (const fields of this.#rows(BY_ID, signal)) {
      const job = jobOf(fields);
      if (job) jobs.push(job);
      else await this.#options.records.change(String(fields._id), () => null);
    }
    return jobs;
  }

  /**
   * Changes a job in one atomic step. `step` may run several times, each with the current job; it returns the new job,
   * null to remove it, or the same job to leave it. Resolves with the job before and after, null for none.
   */
  async change(
    id: string,
    step: (job: Job) => Job | null,
  ): Promise<{ before: Job | null; after: Job | null }> {
    const { before, after } = await this.#options.records.change(id, (row) => {
      const job = row && jobOf(fieldsOf(row));
      if (!job) return 'keep';
      const next = step(job);
      return next === job ? 'keep' : next && toRow(next);
    });
    const left = after && jobOf(fieldsOf(after));
    if (left === null || isFinal(left)) this.ends.tell(id);
    return { before: before && jobOf(fieldsOf(before)), after: left };
  }

  /** The job as it is now, whatever other processes have just written. */
  async current(id: string): Promise<Job | null> {
    return (await this.change(id, (job) => job)).after;
  }

  /** Makes a step of the job's holder. Rejects with LeaseLostError, also when the job was removed. */
  async advance<J extends Job>(id: string, token: string, step: (job: RunningJob) => J): Promise<J> {
    const { after } = await this.change(id, (job) => step(ownedBy(job, token)));
    if (!after) throw new LeaseLostError(id);
    return after as J; // the result of `step`, as it was stored
  }

  async *#rows(plan: Plan, signal: AbortSignal): AsyncGenerator<Fields, void, undefined> {
    const { records } = this.#options;
    const first = await records.read(plan, {}, FIRST_BATCH, signal);
    for await (const batch of chain(records, plan, first, Infinity, signal)) {
      try {
        for (const row of rowsOf(batch)) yield fieldsOf(row);
      } finally {
        batch.release();
      }
    }
  }

  async #read(id: string, signal: AbortSignal): Promise<Fields | null> {
    const batch = await readRow(this.#options.records, makeBookmark({ _id: id }), signal);
    if (!batch) return null;
    try {
      return fieldsOf(documentOf(batch));
    } finally {
      batch.release();
    }
  }
}

type Fields = Readonly<Record<string, unknown>>;

function toRow({ id, ...job }: Job): Uint8Array {
  return BSON.serialize({ _id: id, ...job });
}

/** null for what an earlier release wrote, whose jobs have no `progress`. */
function jobOf({ _id, ...job }: Fields): Job | null {
  return 'progress' in job ? ({ id: _id, ...job } as unknown as Job) : null;
}

function fieldsOf(row: Uint8Array): Fields {
  const own = Buffer.from(row); // a copy, because with promoteBuffers BSON returns views of its input
  return BSON.deserialize(own, { promoteBuffers: true });
}

export function noSuchExport(id: string): AppError {
  return new AppError('not-found', `No export has the id ${quote(id)}.`);
}

function tooMany(perClient: number): AppError {
  return new AppError(
    'too-many-exports',
    `The client has ${perClient} exports, the most that EXPORT_LIMIT allows, including finished ones. DELETE one, or wait until one expires.`,
  );
}
