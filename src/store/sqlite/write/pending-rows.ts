import { KeyWriter } from '../../values/key-writer.ts';
import type { Key } from '../../values/keys.ts';
import { StoredRows } from '../file/checked-rows.ts';
import type { IndexRecord } from '../file/collections.ts';
import type { Connection, SqlValue } from '../file/connection.ts';
import { writeKeys, type KeyedRow } from '../file/keyed.ts';

/** A statement of this many rows takes two thirds of the time of as many statements. More of them gain nothing. */
const ROWS_AT_ONCE = 16;

/**
 * Rows that wait for their transaction. Their keys lie one behind the other in one memory, their documents in another, and
 * both are used again: an object for each value would live long enough to be copied by the garbage collection.
 */
export class PendingRows {
  readonly #keys = new KeyWriter();
  readonly #documents = new StoredRows();
  #numbers: number[] = [];
  /** Where each key ends: of each row its own, then those in the indexes. An empty one is null, because no key is empty. */
  #keyEnds: number[] = [];
  #documentEnds: number[] = [];
  /** Where the own keys of the first and the last row are. */
  #firstEnd = 0;
  #lastFrom = 0;
  #lastEnd = 0;
  /** Whether each key is above that of the row before. */
  isInOrder = true;

  get rows(): number {
    return this.#numbers.length;
  }

  get bytes(): number {
    return this.#documents.length + this.#keys.at;
  }

  get firstKey(): Key {
    return this.#keys.between(0, this.#firstEnd);
  }

  get lastKey(): Key {
    return this.#keys.between(this.#lastFrom, this.#lastEnd);
  }

  clear(): void {
    this.#keys.clear();
    this.#documents.clear();
    this.#numbers = [];
    this.#keyEnds = [];
    this.#documentEnds = [];
    this.isInOrder = true;
  }

  /** Adds a row. Returns the indexes that it makes unusable, or why the store refuses it. */
  add(number: number, document: Uint8Array, indexes: readonly IndexRecord[]): KeyedRow['unusable'] | string {
    const keys = this.#keys;
    const from = keys.at;
    const first = this.#keyEnds.length;
    const unusable = writeKeys(document, indexes, keys, this.#keyEnds);
    if (typeof unusable === 'string') return unusable;
    const end = this.#keyEnds[first] ?? from;
    if (this.#numbers.length === 0) this.#firstEnd = end;
    else this.isInOrder &&= keys.isBelow(this.#lastFrom, this.#lastEnd, from, end);
    this.#lastFrom = from;
    this.#lastEnd = end;
    this.#numbers.push(number);
    this.#documents.add(document);
    this.#documentEnds.push(this.#documents.length);
    return unusable;
  }

  /** In a transaction: inserts them all. `columns`: of the table, those of the number, the key and the document first. */
  insertInto(connection: Connection, table: string, columns: readonly string[]): void {
    const row = `(${columns.map(() => '?').join()})`;
    // `or fail`: the caller's savepoint undoes a statement that fails. SQLite would write a journal of its own for each.
    const sqlOf = (rows: number) =>
      `insert or fail into ${table}(${columns.join()}) values ${Array<string>(rows).fill(row).join()}`;
    const width = columns.length - 2;
    const many = sqlOf(ROWS_AT_ONCE);
    const one = sqlOf(1);
    let at = 0;
    for (; at + ROWS_AT_ONCE <= this.rows; at += ROWS_AT_ONCE)
      connection.run(many, ...this.#values(at, at + ROWS_AT_ONCE, width));
    for (; at < this.rows; at++) connection.run(one, ...this.#values(at, at + 1, width));
  }

  /** The values of rows, each of which has `width` keys. */
  #values(from: number, to: number, width: number): SqlValue[] {
    const values: SqlValue[] = [];
    let keyFrom = this.#keyEnds[from * width - 1] ?? 0;
    let documentFrom = this.#documentEnds[from - 1] ?? 0;
    for (let row = from; row < to; row++) {
      values.push(this.#numbers[row] ?? null);
      for (let key = row * width; key < (row + 1) * width; key++) {
        const end = this.#keyEnds[key] ?? keyFrom;
        values.push(end > keyFrom ? this.#keys.between(keyFrom, end) : null);
        keyFrom = end;
        if (key > row * width) continue;
        const documentEnd = this.#documentEnds[row] ?? documentFrom;
        values.push(this.#documents.between(documentFrom, documentEnd));
        documentFrom = documentEnd;
      }
    }
    return values;
  }
}
