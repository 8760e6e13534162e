import { randomBytes } from 'node:crypto';
import { AppError } from '../errors.ts';
import { makeBookmark } from '../store/bookmark.ts';
import { BSON } from '../store/bson.ts';
import { chain, FIRST_BATCH } from '../stream/chain.ts';
import { documentOf, rowsOf } from '../store/batch.ts';
import type { Plan, RecordStore } from '../store/store.ts';
import { atOnce } from '../stream/at-once.ts';
import { TurnsByKey } from '../store/turns-by-key.ts';
import { isExpired, LeaseLostError, newJob, type ExportRequest, type Job } from './job.ts';
import { markerOf, Markers, markersOf, missing, type Marker } from './markers.ts';

const BY_ID: Plan = { order: 'id', direction: 1 };
/** The record of the store's own id. */
const STORE = 'store';
const ID = /^[0-9a-f]{32}$/;
/** Exports end when they end, or are removed: a pace for asking. Seconds. */
const RETRY_SECONDS = 30;

export interface JobsOptions {
  readonly records: RecordStore;
  /** Exports one client may have, in whatever state. */
  readonly perClient: number;
  readonly now: () => Date;
}

/** A marker without an export for so long is one that a kill left: before, the export may be on its way. Milliseconds. */
const STRAY_MS = 60_000;
/** Exports of a client that are read at a time. */
const READS = 4;

/** All records at one look. */
export interface AllJobs {
  /** Also those whose time is over. */
  readonly jobs: readonly Job[];
  readonly markers: readonly Marker[];
}

/** The records of exports: the only place where the state of a job is. */
export class Jobs {
  readonly #options: JobsOptions;
  readonly #markers: Markers;
  /** Orders of a client are written down one after the other, so that each sees those before it. */
  readonly #ordering = new TurnsByKey();

  constructor(options: JobsOptions) {
    this.#options = options;
    this.#markers = new Markers(options.records, options.now);
  }

  /** AppError `too-many-exports` when the client has its share. Of orders that several processes take at the very same time a few more may pass. */
  create(client: string, request: ExportRequest, signal: AbortSignal): Promise<Job> {
    const { perClient, records, now } = this.#options;
    return this.#ordering.take(client, async () => {
      if (!(await this.#hasRoom(client, signal))) throw tooMany(perClient);
      const job = newJob(randomBytes(16).toString('hex'), client, request, now());
      await Promise.all([this.#markers.add(markersOf(job)), records.change(job.id, () => toRow(job))]);
      return job;
    });
  }

  /** null when there is none, or its time is over. */
  async get(id: string, signal: AbortSignal): Promise<Job | null> {
    const job = ID.test(id) ? await this.#find(id, signal) : null;
    return job && isExpired(job, this.#options.now()) ? null : job;
  }

  /** A client's exports, the newest first. */
  async listOf(client: string, signal: AbortSignal): Promise<Job[]> {
    const markers = await this.#markers.ofClient(client, signal);
    const { jobs } = await this.#jobsOf(markers, signal);
    return this.#lasting(jobs).sort((a, b) => b.createdAt.getTime() - a.createdAt.getTime());
  }

  /** What tells this store from all others: an id that is kept with the exports, and made when somebody asks first. */
  async storeId(): Promise<string> {
    const id = randomBytes(8).toString('hex');
    const made = { _id: STORE, state: 'store', request: {}, createdAt: this.#options.now(), id };
    const { after } = await this.#options.records.change(STORE, (row) =>
      row ? 'keep' : BSON.serialize(made),
    );
    return String(after ? fieldsOf(after).id : id);
  }

  /** Those on their way. */
  live(signal: AbortSignal): Promise<Job[]> {
    return this.#marked(() => this.#markers.live(signal), signal);
  }

  /** Those whose time is over. */
  ended(signal: AbortSignal): Promise<Job[]> {
    return this.#marked(() => this.#markers.ended(signal), signal);
  }

  /** All that there are. What they cost grows with everybody's exports. */
  async all(signal: AbortSignal): Promise<AllJobs> {
    const { records } = this.#options;
    const jobs: Job[] = [];
    const markers: Marker[] = [];
    const first = await records.read(BY_ID, {}, FIRST_BATCH, signal);
    for await (const batch of chain(records, BY_ID, first, Infinity, signal)) {
      try {
        for (const row of rowsOf(batch)) {
          const fields = fieldsOf(row);
          const marker = markerOf(fields);
          if (marker) markers.push(marker);
          else if (ID.test(String(fields._id))) jobs.push(jobOf(fields));
        }
      } finally {
        batch.release();
      }
    }
    return { jobs, markers };
  }

  /** Gives exports the markers that they lack. */
  async repair({ jobs, markers }: AllJobs): Promise<void> {
    await this.#markers.add(missing(jobs, markers));
  }

  /** Whether a client may have one more. Markers are counted first; only a client that has its share is looked at. */
  async #hasRoom(client: string, signal: AbortSignal): Promise<boolean> {
    const { perClient } = this.#options;
    const markers = await this.#markers.ofClient(client, signal);
    if (markers.length < perClient) return true;
    const { jobs, young } = await this.#jobsOf(markers, signal);
    return this.#lasting(jobs).length + young < perClient;
  }

  /** Those whose time is not over. */
  #lasting(jobs: readonly Job[]): Job[] {
    const now = this.#options.now();
    return jobs.filter((job) => !isExpired(job, now));
  }

  /** Exports that a kind of marker names and that still should have one; markers that name another one are removed. */
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

  /** The exports of markers. A marker without one is removed, unless its export may be about to be written: those are counted. */
  async #jobsOf(markers: readonly Marker[], signal: AbortSignal): Promise<{ jobs: Job[]; young: number }> {
    const turn = atOnce(READS);
    const found = await Promise.all(markers.map(({ id }) => turn(() => this.#find(id, signal))));
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
  return jobOf(fieldsOf(row));
}

function jobOf({ _id, ...job }: Readonly<Record<string, unknown>>): Job {
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

function fieldsOf(row: Uint8Array): Readonly<Record<string, unknown>> {
  const own = Buffer.from(row); // what BSON calls a buffer is a view of what it reads
  return BSON.deserialize(own, { promoteBuffers: true });
}

function tooMany(perClient: number): AppError {
  return new AppError(
    'too-many-exports',
    `EXPORT_LIMIT lets a client have ${perClient} exports, finished ones included, and there are. Remove one with DELETE, or wait until one expires.`,
    { headers: { 'retry-after': String(RETRY_SECONDS) } },
  );
}
