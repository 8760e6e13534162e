import { createHash } from 'node:crypto';
import { rowsOf } from '../store/batch.ts';
import { makeBookmark } from '../store/bookmark.ts';
import { BSON } from '../store/bson.ts';
import { chain, FIRST_BATCH } from '../stream/chain.ts';
import type { Plan, RecordStore } from '../store/store.ts';
import { isFinal, type Job } from './job.ts';

/**
 * A marker: a record without content beside those of the exports. Records can be read only in order of id, so markers
 * put each search into one range of ids.
 *
 * - `of:CLIENT:ID` for each export of a client. CLIENT is taken from the SHA-256 of the client's name.
 * - `live:ID` for each export that is not final yet.
 * - `ends:TIME:ID` for each final export, with the time at which it is removed.
 *
 * A marker and its export are not changed in one step. A kill may leave a superfluous marker, which the next reader finds
 * and removes. It may also leave a marker missing, which `missing` finds when all records are read.
 */
export interface Marker {
  /** The `_id` of its record. */
  readonly name: string;
  /** The id of the export. */
  readonly id: string;
  readonly createdAt: Date;
}

const MARKER = /^(?:of:[0-9a-f]{32}|live|ends:[0-9TZ:.-]+):([0-9a-f]{32})$/;
/** The next character after `:` in the order of bytes. */
const BEHIND = ';';

/** The names of the markers that an export should have. */
export function markersOf(job: Job): readonly string[] {
  const own = `${ofClient(job.client)}${job.id}`;
  return [own, isFinal(job) ? `ends:${job.expiresAt.toISOString()}:${job.id}` : `live:${job.id}`];
}

/** The names of markers that exports lack, after a kill between two writes or because an old version wrote none. */
export function missing(jobs: readonly Job[], found: readonly Marker[]): readonly string[] {
  const names = new Set(found.map(({ name }) => name));
  return jobs.flatMap(markersOf).filter((name) => !names.has(name));
}

/** Reads a record as a marker; null when it is not one. */
export function markerOf(row: Readonly<Record<string, unknown>>): Marker | null {
  const { _id: name, createdAt } = row;
  const [, id] = MARKER.exec(String(name)) ?? [];
  return id === undefined ? null : { name: String(name), id, createdAt: createdAt as Date };
}

/** The markers of a store. */
export class Markers {
  readonly #records: RecordStore;
  readonly #now: () => Date;

  constructor(records: RecordStore, now: () => Date) {
    this.#records = records;
    this.#now = now;
  }

  ofClient(client: string, signal: AbortSignal): Promise<Marker[]> {
    const prefix = ofClient(client);
    return this.#range(prefix, prefix.slice(0, -1) + BEHIND, signal);
  }

  /** The markers of exports that are not final yet. */
  live(signal: AbortSignal): Promise<Marker[]> {
    return this.#range('live:', `live${BEHIND}`, signal);
  }

  /** The markers of expired exports. */
  ended(signal: AbortSignal): Promise<Marker[]> {
    return this.#range('ends:', `ends:${this.#now().toISOString()}${BEHIND}`, signal);
  }

  async add(names: readonly string[]): Promise<void> {
    const createdAt = this.#now();
    // The collection's validator requires these fields of every record.
    const rowOf = (_id: string) => BSON.serialize({ _id, state: 'marker', request: {}, createdAt });
    await Promise.all(names.map((name) => this.#records.change(name, (row) => (row ? 'keep' : rowOf(name)))));
  }

  async remove(names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => this.#records.change(name, () => null)));
  }

  async #range(from: string, to: string, signal: AbortSignal): Promise<Marker[]> {
    const ids = { from: makeBookmark({ _id: from }), to: makeBookmark({ _id: to }) };
    const plan: Plan = { sort: '_id', direction: 1, ids };
    const markers: Marker[] = [];
    const first = await this.#records.read(plan, {}, FIRST_BATCH, signal);
    for await (const batch of chain(this.#records, plan, first, Infinity, signal)) {
      try {
        for (const row of rowsOf(batch)) {
          const marker = markerOf(BSON.deserialize(Buffer.from(row)));
          if (marker) markers.push(marker);
        }
      } finally {
        batch.release();
      }
    }
    return markers;
  }
}

function ofClient(client: string): string {
  return `of:${createHash('sha256').update(client).digest('hex').slice(0, 32)}:`;
}
