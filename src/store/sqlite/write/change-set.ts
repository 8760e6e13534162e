import { KEY_EXISTS, type Bookmark } from '../../bookmark.ts';
import { compareKeys, type Key } from '../../values/keys.ts';
import type { OnConflict } from '../../store.ts';
import { DamagedRowError, documentIn, storedRow } from '../file/checked-rows.ts';
import { bytesIn, type SqlValue } from '../file/connection.ts';
import type { Core } from '../core.ts';
import { keyOfRow, keyRow, type KeyedRow } from '../file/keyed.ts';
import { columnsOf, rowsTable } from '../file/layout.ts';
import type { ChangeNotes } from '../file/log.ts';
import {
  LARGE_BYTES,
  type IndexRecord,
  type CollectionRecord,
  type CollectionShape,
} from '../file/collections.ts';

/** What became of a row. A text: why it was refused. */
type Outcome = 'written' | 'skipped' | { readonly refused: string };

/** The changes that one transaction makes to a collection. `end` is called last. */
export class ChangeSet {
  readonly #core: Core;
  readonly #shape: CollectionShape;
  readonly #notes: ChangeNotes | null;
  readonly #table: string;
  readonly #insertSql: string;
  readonly #updateSql: string;
  #collection: CollectionRecord;
  #added = 0;

  constructor(core: Core, shape: CollectionShape, collection: CollectionRecord) {
    this.#core = core;
    this.#shape = shape;
    this.#collection = collection;
    this.#notes = shape.hasChanges ? core.log.begin(collection) : null;
    this.#table = rowsTable(collection.number);
    const columns = ['k', 'd', ...columnsOf(collection.indexes)];
    const values = columns.map(() => '?').join();
    const pairs = columns.map((column) => `${column} = ?`).join();
    this.#insertSql = `insert into ${this.#table}(${columns.join()}) values (${values}) on conflict(k) do nothing`;
    this.#updateSql = `update ${this.#table} set ${pairs} where n = ?`;
  }

  write(document: Uint8Array, onConflict: OnConflict): Outcome {
    const row = keyRow(document, this.#collection.indexes, this.#shape.check);
    if (typeof row === 'string') return { refused: row };
    const stored = storedRow(document);
    if (this.#core.connection.run(this.#insertSql, row.key, stored, ...row.entries) > 0) {
      this.#keepOrder(row.key);
      this.#added++;
      this.#noteChange(null, row.document);
    } else if (onConflict === 'skip') return 'skipped';
    else if (onConflict === 'fail') return { refused: KEY_EXISTS };
    else this.#replace(row, stored);
    this.#noteFirst(row);
    return 'written';
  }

  /** Returns whether the row was there. */
  remove(id: Bookmark): boolean {
    const key = keyOfRow(id);
    const before = key && this.#rowOf(key);
    if (!before) return false;
    this.#core.connection.run(`delete from ${this.#table} where n = ?`, before.n);
    this.#added--;
    this.#noteChange(before.document, null);
    return true;
  }

  end(): void {
    const { collections, log } = this.#core;
    collections.addRows(this.#collection.name, this.#added);
    if (this.#collection.isUnfilled && this.#added > 0)
      this.#put({ ...this.#collection, isUnfilled: undefined });
    if (this.#notes) log.prune(this.#collection);
  }

  /** Notes when a new row, which lies behind all others, has no higher key than they. */
  #keepOrder(key: Key): void {
    if (!this.#collection.isInOrder) return;
    const higher = this.#core.connection.get(`select 1 from ${this.#table} where k > ? limit 1`, key);
    if (higher) this.#put({ ...this.#collection, isInOrder: undefined });
  }

  #replace(row: KeyedRow, stored: Uint8Array): void {
    const before = this.#rowOf(row.key);
    if (!before) throw new DamagedRowError('a row that exists cannot be read');
    if (compareKeys(before.document, row.document) === 0) return; // no change, so that followers read none
    this.#core.connection.run(this.#updateSql, row.key, stored, ...row.entries, before.n);
    this.#noteChange(before.document, row.document);
  }

  #rowOf(key: Key): { readonly n: SqlValue; readonly document: Uint8Array } | null {
    const found = this.#core.connection.get(`select n, d from ${this.#table} where k = ?`, key);
    const stored = bytesIn(found, 'd');
    return found && stored ? { n: found.n ?? null, document: documentIn(stored) } : null;
  }

  /** Notes what the row changes of the collection itself. */
  #noteFirst({ document, unusable }: KeyedRow): void {
    const isFirstLarge = document.length > LARGE_BYTES && this.#collection.hasLargeRows !== true;
    if (unusable.length === 0 && !isFirstLarge) return;
    this.#put({ ...withUnusable(this.#collection, unusable), ...(isFirstLarge && { hasLargeRows: true }) });
  }

  #noteChange(before: Uint8Array | null, after: Uint8Array | null): void {
    if (this.#notes) this.#core.log.note(this.#notes, before, after);
  }

  #put(changed: CollectionRecord): void {
    this.#collection = changed;
    this.#core.collections.put(changed);
  }
}

/** The collection with these indexes unusable. The first reason stays. */
export function withUnusable(collection: CollectionRecord, unusable: KeyedRow['unusable']): CollectionRecord {
  const reasons = new Map(unusable.map(({ index, reason }) => [index, reason]));
  const indexes = collection.indexes.map((index, at): IndexRecord => {
    const reason = reasons.get(at);
    return reason === undefined || index.unusable !== undefined ? index : { ...index, unusable: reason };
  });
  return { ...collection, indexes };
}
