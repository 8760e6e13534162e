import { KEY_EXISTS, type Bookmark } from '../bookmark.ts';
import type { Key } from '../keys.ts';
import type { OnConflict } from '../store.ts';
import { DamagedRowError, documentIn, storedRow } from './checked-rows.ts';
import { bytesIn, type SqlValue } from './connection.ts';
import type { Core } from './core.ts';
import { keyOfRow, keyRow, type KeyedRow } from './keyed.ts';
import { columnOf, rowsTable } from './layout.ts';
import type { ChangeNotes } from './log.ts';
import { LARGE_BYTES, type IndexRecord, type SetRecord, type SetShape } from './sets.ts';

/** What became of a row. A text: why it was refused. */
export type Outcome = 'written' | 'skipped' | { readonly refused: string };

/** The changes that one transaction makes to a set. `end` is called last. */
export class SetChanges {
  readonly #core: Core;
  readonly #shape: SetShape;
  readonly #notes: ChangeNotes | null;
  readonly #behind: string;
  readonly #insert: string;
  readonly #update: string;
  #set: SetRecord;
  #added = 0;

  constructor(core: Core, shape: SetShape, set: SetRecord) {
    [this.#core, this.#shape, this.#set] = [core, shape, set];
    this.#notes = shape.hasChanges ? core.log.begin(set) : null;
    const table = rowsTable(set.number);
    const names = ['k', 'd', ...set.indexes.map((index) => columnOf(index.number))];
    this.#behind = `select 1 from ${table} where k > ? limit 1`;
    this.#insert =
      `insert into ${table}(${names.join()}) values (${names.map(() => '?').join()})` +
      ' on conflict(k) do nothing';
    this.#update = `update ${table} set ${names.map((name) => `${name} = ?`).join()} where n = ?`;
  }

  write(document: Uint8Array, onConflict: OnConflict): Outcome {
    const row = this.#shape.refusalOf(document) ?? keyRow(document, this.#set.indexes);
    if (typeof row === 'string') return { refused: row };
    const stored = storedRow(document);
    if (this.#core.connection.run(this.#insert, row.key, stored, ...row.entries) > 0) {
      this.#keepOrder(row.key);
      this.#added++;
      this.#notes?.addNew(row.document);
    } else if (onConflict === 'skip') return 'skipped';
    else if (onConflict === 'fail') return { refused: KEY_EXISTS };
    else this.#replace(row, stored);
    this.#note(row);
    return 'written';
  }

  /** Removes the row with an id. Returns whether there was one. */
  remove(id: Bookmark): boolean {
    const key = keyOfRow(id);
    const before = key && this.#row(key);
    if (!before) return false;
    this.#core.connection.run(`delete from ${rowsTable(this.#set.number)} where n = ?`, before.n);
    this.#added--;
    this.#notes?.addRemoved(before.document);
    return true;
  }

  end(): void {
    this.#core.sets.addRows(this.#set.name, this.#added);
    if (this.#notes) this.#core.log.prune(this.#set);
  }

  /** Notes when a new row, which lies behind all others, has no higher key than they. */
  #keepOrder(key: Key): void {
    if (!this.#set.isInOrder || !this.#core.connection.get(this.#behind, key)) return;
    this.#put({ ...this.#set, isInOrder: undefined });
  }

  #replace(row: KeyedRow, stored: Uint8Array): void {
    const before = this.#row(row.key);
    if (!before) throw new DamagedRowError('a row that exists cannot be read');
    this.#core.connection.run(this.#update, row.key, stored, ...row.entries, before.n);
    this.#notes?.addReplaced(before.document, row.document);
  }

  #row(key: Uint8Array): { readonly n: SqlValue; readonly document: Uint8Array } | null {
    const found = this.#core.connection.get(
      `select n, d from ${rowsTable(this.#set.number)} where k = ?`,
      key,
    );
    const stored = bytesIn(found, 'd');
    return found && stored ? { n: found.n ?? null, document: documentIn(stored) } : null;
  }

  /** Notes what the row changes of the set itself. */
  #note({ document, unusable }: KeyedRow): void {
    const isFirstLarge = document.length > LARGE_BYTES && this.#set.hasLargeRows !== true;
    if (unusable.length === 0 && !isFirstLarge) return;
    this.#put({ ...withUnusable(this.#set, unusable), ...(isFirstLarge && { hasLargeRows: true }) });
  }

  #put(set: SetRecord): void {
    this.#set = set;
    this.#core.sets.put(set);
  }
}

/** The set with these indexes unusable. The first reason stays. */
export function withUnusable(set: SetRecord, unusable: KeyedRow['unusable']): SetRecord {
  const reasons = new Map(unusable.map(({ index, reason }) => [index, reason]));
  const indexes = set.indexes.map((index, at): IndexRecord => {
    const reason = reasons.get(at);
    return reason === undefined || index.unusable !== undefined ? index : { ...index, unusable: reason };
  });
  return { ...set, indexes };
}
