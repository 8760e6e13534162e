import { collectionReplaced, snapshotUnsupported } from '../../errors.ts';
import type { Batch } from '../batch.ts';
import { bookmarkOf, KEY, type Bookmark, type Identity } from '../bookmark.ts';
import type { Plan, Size } from '../store.ts';
import { documentIn, HEAD_BYTES } from './checked-rows.ts';
import type { SetFeedOptions } from './feed.ts';
import { hasValues, keyOfRow, wantedOf, type Wanted } from './keyed.ts';
import { batchOf } from './read.ts';
import type { SetRecord } from './sets.ts';

/** Rows looked up in one look: about 4 ms. */
const LOOKED_UP_AT_ONCE = 512;

/** Looks rows up by their ids. See ChangeFeed.rows. */
export class RowLookUp {
  readonly #options: SetFeedOptions;
  readonly #keys: readonly Bookmark[];
  readonly #plan: Plan;
  readonly #wanted: readonly Wanted[];
  /** The rows that were looked up: 7 and 7.0 lead to one row. */
  readonly #done = new Set<string>();
  #at = 0;
  #identity: Identity | undefined;

  constructor(options: SetFeedOptions, keys: readonly Bookmark[], plan: Plan) {
    this.#options = options;
    this.#keys = keys;
    this.#plan = plan;
    this.#identity = plan.identity;
    this.#wanted = wantedOf(plan.equals);
  }

  async *batches(size: Size, signal: AbortSignal): AsyncGenerator<Batch, void, undefined> {
    if (this.#plan.at !== undefined) throw snapshotUnsupported();
    while (this.#at < this.#keys.length) {
      const batch = await this.#options.looks.take(() => this.#look(size), signal, size.patient);
      if (batch) yield batch;
    }
  }

  /** Null when none of the next keys has a row that fits. */
  #look(size: Size): Batch | null {
    const { slots, present, sets, name } = this.#options;
    const current = sets.get(name);
    // Without an identity in the plan, all batches are still of one collection.
    this.#identity ??= current.identity;
    if (this.#identity !== current.identity) throw collectionReplaced();
    const rows = this.#rows(present(this.#plan), size);
    const last = rows.at(-1);
    if (!last) return null;
    const length = rows.reduce((sum, row) => sum + row.length, 0);
    const slot = slots.take(length);
    const bytes = slot.bytes();
    let at = 0;
    for (const row of rows) {
      bytes.set(row, at);
      at += row.length;
    }
    const bookmark = bookmarkOf(last.subarray(HEAD_BYTES), { sort: KEY });
    const more = this.#at < this.#keys.length; // their rows may be gone
    return { ...batchOf(slot, rows.length, length, bookmark, more), identity: this.#identity };
  }

  /** The next stored rows that fit the plan. */
  #rows(set: SetRecord, size: Size): readonly Uint8Array[] {
    const rows: Uint8Array[] = [];
    const end = Math.min(this.#at + LOOKED_UP_AT_ONCE, this.#keys.length);
    for (let length = 0; this.#at < end && rows.length < size.rows && length < size.bytes; this.#at++) {
      const id = this.#keys[this.#at];
      const key = id && keyOfRow(id);
      if (!key) continue;
      const name = Buffer.from(key).toString('latin1');
      if (this.#done.has(name)) continue;
      this.#done.add(name);
      const row = this.#options.reader.row(set.number, key);
      if (!row || !hasValues(documentIn(row), this.#wanted)) continue;
      rows.push(row);
      length += row.length;
    }
    return rows;
  }
}
