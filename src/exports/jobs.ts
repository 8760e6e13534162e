import { randomBytes } from 'node:crypto';
import { AppError } from '../errors.ts';
import { makeBookmark } from '../store/bookmark.ts';
import { BSON } from '../store/bson.ts';
import { chain, FIRST_BATCH } from '../stream/chain.ts';
import { documentOf, rowsOf } from '../store/batch.ts';
import type { Plan, RecordStore } from '../store/store.ts';
import { Turns, TurnsByKey } from '../turns.ts';
import { isExpired, LeaseLostError, newJob, type ExportRequest, type Job } from './job.ts';
import { markerOf, Markers, markersOf, missing, type Marker } from './markers.ts';

const BY_ID: Plan = { sort: '_id', direction: 1 };
/** The `_id` of the record that holds the store's own id. */
const STORE = 'store';
const ID = /^[0-9a-f]{32}$/;

export interface JobsOptions {
  readonly records: RecordStore;
  /** The number of exports that one client may have, in all states together. */
  readonly perClient: number;
  readonly now: () => Date;
}

/**
 * A marker that has no export after this time was left by a killed process. A younger one may belong to an export that
 * is about to be written. Milliseconds.
 */
const STRAY_MS = 60_000;
/** The number of exports that are read at the same time. */
const READS = 4;

/** All records, as one read found them. */
export interface AllJobs {
  /** Expired exports included. */
  readonly jobs: readonly Job[];
  readonly markers: readonly Marker[];
  /** The ids of records that an earlier release wrote. */
  readonly outdated: readonly string[];
}

/** The records of exports, which are the only place that holds the state of a job. */
export class Jobs {
  readonly #options: JobsOptions;
  readonly #markers: Markers;
  /** Serializes the orders of each client, so that each one sees those before it. */
  readonly #ordering = new TurnsByKey();

  constructor(options: JobsOptions) {
    this.#options = options;
    this.#markers = new Markers(options.records, options.now);
  }

  /**
   * Creates a job. Rejects with AppError `too-many-exports` when the client has `perClient` exports. A few more may pass
   * when several processes take orders of one client at the same time.
   */
  create(client: string, request: ExportRequest, signal: AbortSignal): Promise<Job> {
    const { perClient, records, now } = this.#options;
    return this.#ordering.take(client, async () => {
      if (!(await this.#hasRoom(client, signal))) throw tooMany(perClient);
      const job = newJob(randomBytes(16).toString('hex'), client, request, now());
      await Promise.all([this.#markers.add(markersOf(job)), records.change(job.id, () => toRow(job))]);
      return job;
    });
  }

  /** The job with this id; null when there is none, or when it has expired. */
  async get(id: string, signal: AbortSignal): Promise<Job | null> {
    const job = ID.test(id) ? await this.#find(id, signal) : null;
    return job && isExpired(job, this.#options.now()) ? null : job;
  }

  /** The exports of a client, newest first, without expired ones. */
  async listOf(client: string, signal: AbortSignal): Promise<Job[]> {
    const markers = await this.#markers.ofClient(client, signal);
    const { jobs } = await this.#jobsOf(markers, signal);
    return this.#lasting(jobs).sort((a, b) => b.createdAt.getTime() - a.createdAt.getTime());
  }

  /** The unique id of this store. It is kept among the exports and created by the first call. */
  async storeId(): Promise<string> {
    const id = randomBytes(8).toString('hex');
    const made = { _id: STORE, state: 'store', request: {}, createdAt: this.#options.now(), id };
    const { after } = await this.#options.records.change(STORE, (row) =>
      row ? 'keep' : BSON.serialize(made),
    );
    return String(after ? fieldsOf(after).id : id);
  }

  /** The exports that are not final yet. */
  live(signal: AbortSignal): Promise<Job[]> {
    return this.#marked(() => this.#markers.live(signal), signal);
  }

  /** The expired exports. */
  ended(signal: AbortSignal): Promise<Job[]> {
    return this.#marked(() => this.#markers.ended(signal), signal);
  }

  /** All records. The cost grows with the number of exports of all clients. */
  async all(signal: AbortSignal): Promise<AllJobs> {
    const { records } = this.#options;
    const jobs: Job[] = [];
    const markers: Marker[] = [];
    const outdated: string[] = [];
    const first = await records.read(BY_ID, {}, FIRST_BATCH, signal);
    for await (const batch of chain(records, BY_ID, first, Infinity, signal)) {
      try {
        for (const row of rowsOf(batch)) {
          const fields = fieldsOf(row);
          const marker = markerOf(fields);
          if (marker) markers.push(marker);
          else if (ID.test(String(fields._id))) {
            const job = jobOf(fields);
            if (job) jobs.push(job);
            else outdated.push(String(fields._id));
          }
        }
      } finally {
        batch.release();
      }
    }
    return { jobs, markers, outdated };
  }

  /** Adds the markers that exports lack, and removes the records of earlier releases. */
  async repair({ jobs, markers, outdated }: AllJobs): Promise<void> {
    await this.#markers.add(missing(jobs, markers));
    await Promise.all(outdated.map((id) => this.#options.records.change(id, () => null)));
  }

  /** Whether a client may have one more export. Reads the exports only when their markers reach the limit. */
  async #hasRoom(client: string, signal: AbortSignal): Promise<boolean> {
    const { perClient } = this.#options;
    const markers = await this.#markers.ofClient(client, signal);
    if (markers.length < perClient) return true;
    const { jobs, young } = await this.#jobsOf(markers, signal);
    return this.#lasting(jobs).length + young < perClient;
  }

  /** The jobs that have not expired. */
  #lasting(jobs: readonly Job[]): Job[] {
    const now = this.#options.now();
    return jobs.filter((job) => !isExpired(job, now));
  }

  /** The exports that should still have a marker of this kind. Removes markers that no longer apply. */
  async #marked(read: () => Promise<Marker[]>, signal: AbortSignal): Promise<Job[]> {
    const markers = await read();
    const { jobs } = await this.#jobsOf(markers, signal);
    const right = new Set(jobs.flatMap(markersOf));
    const jobOfId = new Map(jobs.map((job) => [job.id, job]));
    const wrong = markers.filter(({ name, id }) => jobOfId.has(id) && !right.has(name));
    await this.#markers.remove(wrong.map(({ name }) => name));
    for (const { id } of wrong) jobOfId.delete(id);
    return [...jobOfId.values()];
  }

  /**
   * The exports that markers name. Removes a marker without an export once it is STRAY_MS old. `young` counts those that
   * are younger, because their exports may be about to be written.
   */
  async #jobsOf(markers: readonly Marker[], signal: AbortSignal): Promise<{ jobs: Job[]; young: number }> {
    const turns = new Turns(READS);
    const found = await Promise.all(markers.map(({ id }) => turns.take(() => this.#find(id, signal))));
    const without = markers.filter((_, n) => found[n] === null);
    const before = this.#options.now().getTime() - STRAY_MS;
    const strays = without.filter(({ createdAt }) => createdAt.getTime() < before);
    await this.#markers.remove(strays.map(({ name }) => name));
    return { jobs: found.filter((job) => job !== null), young: without.length - strays.length };
  }

  async #find(id: string, signal: AbortSignal): Promise<Job | null> {
    const batch = await this.#options.records.get(makeBookmark({ _id: id }), signal);
    if (!batch) return null;
    try {
      return fromRow(documentOf(batch));
    } finally {
      batch.release();
    }
  }

  /**
   * Changes a job in one atomic step. `step` may be called several times, each time with the current job. It returns the
   * new job, null to remove the job, or the job itself to leave it unchanged. Resolves with the job before and after,
   * each null when there is none.
   */
  async change(
    id: string,
    step: (job: Job) => Job | null,
  ): Promise<{ before: Job | null; after: Job | null }> {
    const { before, after } = await this.#options.records.change(id, (current) => {
      if (!current) return 'keep';
      const job = fromRow(current);
      if (!job) return 'keep';
      const next = step(job);
      if (next === job) return 'keep';
      return next && toRow(next);
    });
    const changed = { before: before && fromRow(before), after: after && fromRow(after) };
    await this.#mark(changed);
    return changed;
  }

  async #mark({ before, after }: { before: Job | null; after: Job | null }): Promise<void> {
    const [had, has] = [before, after].map((job) => (job ? markersOf(job) : []));
    await Promise.all([
      this.#markers.add((has ?? []).filter((name) => !had?.includes(name))),
      this.#markers.remove((had ?? []).filter((name) => !has?.includes(name))),
    ]);
  }

  /** Makes a step that requires the job's lease. Rejects with LeaseLostError also when the job was removed. */
  async advance<J extends Job>(id: string, step: (job: Job) => J): Promise<J> {
    const { after } = await this.change(id, step);
    if (!after) throw new LeaseLostError(id);
    return after as J; // the result of `step`, as it was stored
  }
}

/** The BSON document of a job. */
function toRow({ id, ...job }: Job): Uint8Array {
  return BSON.serialize({ _id: id, ...job });
}

function fromRow(row: Uint8Array): Job | null {
  return jobOf(fieldsOf(row));
}

/** null for a job that an earlier release wrote: its order was no query, and its file was written in parts. */
function jobOf({ _id, ...job }: Readonly<Record<string, unknown>>): Job | null {
  return 'progress' in job ? ({ id: _id, ...job } as unknown as Job) : null;
}

function fieldsOf(row: Uint8Array): Readonly<Record<string, unknown>> {
  const own = Buffer.from(row); // a copy, because with promoteBuffers BSON returns views of its input
  return BSON.deserialize(own, { promoteBuffers: true });
}

function tooMany(perClient: number): AppError {
  return new AppError(
    'too-many-exports',
    `The client has ${perClient} exports, the most that EXPORT_LIMIT allows, including finished ones. DELETE one, or wait until one expires.`,
  );
}
