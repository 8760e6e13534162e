import type { Bookmark } from '../bookmark.ts';
import type { Key } from '../keys.ts';
import { KEY_EXISTS } from '../bookmark.ts';
import type { OnConflict } from '../store.ts';
import { DamagedRowError, documentIn, storedRow } from './checked-rows.ts';
import { bytesIn, type Connection, type SqlValue } from './connection.ts';
import { keyOfRow, keyRow, type KeyedRow } from './keyed.ts';
import { columnOf, rowsTable } from './layout.ts';
import type { ChangeNotes } from './log.ts';
import type { SetParts } from './set-parts.ts';
import type { IndexRecord, SetRecord } from './sets.ts';

/** A row above this size makes its set one with large rows. Bytes. */
const LARGE = 64 * 1024;

/** What became of a row. A text: why it was refused. */
export type Outcome = 'written' | 'skipped' | { readonly refused: string };

/** The changes that one transaction makes to a set. `end` is called last. */
export class SetChanges {
  readonly #options: SetParts;
  readonly #connection: Connection;
  readonly #notes: ChangeNotes | null;
  #set: SetRecord;
  #added = 0;
  #behind = '';
  #insert = '';
  #update = '';

  constructor(options: SetParts, set: SetRecord) {
    this.#options = options;
    this.#connection = options.connection;
    this.#notes = options.log?.begin(set) ?? null;
    this.#set = set;
    this.#prepare();
  }

  write(document: Uint8Array, onConflict: OnConflict): Outcome {
    const refused = this.#options.refusalOf(document);
    if (refused !== null) return { refused };
    const row = keyRow(document, this.#set.indexes);
    if (typeof row === 'string') return { refused: row };
    const stored = storedRow(document);
    if (this.#connection.run(this.#insert, row.key, stored, ...row.entries) > 0) {
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
    this.#connection.run(`delete from ${rowsTable(this.#set.number)} where n = ?`, before.n);
    this.#added--;
    this.#notes?.addRemoved(before.document);
    return true;
  }

  end(): void {
    const { sets, log } = this.#options;
    sets.addRows(this.#set.name, this.#added);
    log?.prune(this.#set);
  }

  /** Notes when a new row, which lies behind all others, has no higher key than they. */
  #keepOrder(key: Key): void {
    if (!this.#set.isInOrder || !this.#connection.get(this.#behind, key)) return;
    this.#set = { ...this.#set, isInOrder: undefined };
    this.#options.sets.put(this.#set);
  }

  #replace(row: KeyedRow, stored: Uint8Array): void {
    const before = this.#row(row.key);
    if (!before) throw new DamagedRowError('a row that exists cannot be read');
    this.#connection.run(this.#update, row.key, stored, ...row.entries, before.n);
    this.#notes?.addReplaced(before.document, row.document);
  }

  #row(key: Uint8Array): { readonly n: SqlValue; readonly document: Uint8Array } | null {
    const found = this.#connection.get(`select n, d from ${rowsTable(this.#set.number)} where k = ?`, key);
    const stored = bytesIn(found, 'd');
    return found && stored ? { n: found.n ?? null, document: documentIn(stored) } : null;
  }

  /** Notes what the row changes of the set itself. */
  #note({ document, unusable }: KeyedRow): void {
    const isFirstLarge = document.length > LARGE && this.#set.hasLargeRows !== true;
    if (unusable.length === 0 && !isFirstLarge) return;
    this.#set = { ...withUnusable(this.#set, unusable), ...(isFirstLarge && { hasLargeRows: true }) };
    this.#options.sets.put(this.#set);
  }

  #prepare(): void {
    const { number, indexes } = this.#set;
    const columns = indexes.map((index) => columnOf(index.number));
    const names = ['k', 'd', ...columns];
    this.#behind = `select 1 from ${rowsTable(number)} where k > ? limit 1`;
    this.#insert =
      `insert into ${rowsTable(number)}(${names.join()}) values (${names.map(() => '?').join()})` +
      ' on conflict(k) do nothing';
    this.#update = `update ${rowsTable(number)} set ${names.map((name) => `${name} = ?`).join()} where n = ?`;
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
