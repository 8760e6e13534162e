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

/** The changes that one transaction makes to a set. `end` is called last. */
export class ChangeSet {
  readonly #core: Core;
  readonly #shape: CollectionShape;
  readonly #notes: ChangeNotes | null;
  readonly #table: string;
  readonly #insertSql: string;
  readonly #updateSql: string;
  #set: CollectionRecord;
  #added = 0;

  constructor(core: Core, shape: CollectionShape, set: CollectionRecord) {
    this.#core = core;
    this.#shape = shape;
    this.#set = set;
    this.#notes = shape.hasChanges ? core.log.begin(set) : null;
    this.#table = rowsTable(set.number);
    const columns = ['k', 'd', ...columnsOf(set.indexes)];
    const values = columns.map(() => '?').join();
    const pairs = columns.map((column) => `${column} = ?`).join();
    this.#insertSql = `insert into ${this.#table}(${columns.join()}) values (${values}) on conflict(k) do nothing`;
    this.#updateSql = `update ${this.#table} set ${pairs} where n = ?`;
  }

  write(document: Uint8Array, onConflict: OnConflict): Outcome {
    const row = this.#shape.refusalOf(document) ?? keyRow(document, this.#set.indexes);
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
    const { sets, log } = this.#core;
    sets.addRows(this.#set.name, this.#added);
    if (this.#set.isUnfilled && this.#added > 0) this.#put({ ...this.#set, isUnfilled: undefined });
    if (this.#notes) log.prune(this.#set);
  }

  /** Notes when a new row, which lies behind all others, has no higher key than they. */
  #keepOrder(key: Key): void {
    if (!this.#set.isInOrder) return;
    const higher = this.#core.connection.get(`select 1 from ${this.#table} where k > ? limit 1`, key);
    if (higher) this.#put({ ...this.#set, isInOrder: undefined });
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

  /** Notes what the row changes of the set itself. */
  #noteFirst({ document, unusable }: KeyedRow): void {
    const isFirstLarge = document.length > LARGE_BYTES && this.#set.hasLargeRows !== true;
    if (unusable.length === 0 && !isFirstLarge) return;
    this.#put({ ...withUnusable(this.#set, unusable), ...(isFirstLarge && { hasLargeRows: true }) });
  }

  #noteChange(before: Uint8Array | null, after: Uint8Array | null): void {
    if (this.#notes) this.#core.log.note(this.#notes, before, after);
  }

  #put(changed: CollectionRecord): void {
    this.#set = changed;
    this.#core.sets.put(changed);
  }
}

/** The set with these indexes unusable. The first reason stays. */
export function withUnusable(set: CollectionRecord, unusable: KeyedRow['unusable']): CollectionRecord {
  const reasons = new Map(unusable.map(({ index, reason }) => [index, reason]));
  const indexes = set.indexes.map((index, at): IndexRecord => {
    const reason = reasons.get(at);
    return reason === undefined || index.unusable !== undefined ? index : { ...index, unusable: reason };
  });
  return { ...set, indexes };
}
