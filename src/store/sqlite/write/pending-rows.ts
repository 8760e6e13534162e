import type { Key } from '../../values/keys.ts';
import { putRow, storedLength } from '../file/checked-rows.ts';
import type { Connection, SqlValue } from '../file/connection.ts';

/** The size of the memory at the beginning, in bytes. */
const FIRST_BYTES = 1024 * 1024;
/** A statement of this many rows takes two thirds of the time of as many statements. More of them gain nothing. */
const ROWS_AT_ONCE = 16;

/**
 * Rows that wait for their transaction. The values of their columns lie one behind the other in one memory, which is used again:
 * an object for each value would live long enough to be copied by the garbage collection.
 */
export class PendingRows {
  #bytes = Buffer.alloc(FIRST_BYTES);
  /** The number of each row, and where each of its values ends. An empty one is null: no key and no document is empty. */
  #numbers: number[] = [];
  #ends: number[] = [];
  #at = 0;

  get rows(): number {
    return this.#numbers.length;
  }

  get bytes(): number {
    return this.#at;
  }

  clear(): void {
    this.#numbers = [];
    this.#ends = [];
    this.#at = 0;
  }

  add(number: number, key: Key, document: Uint8Array, entries: readonly (Key | null)[]): void {
    this.#numbers.push(number);
    this.#add(key);
    const size = storedLength(document);
    this.#room(size);
    putRow(this.#bytes, this.#at, document);
    this.#at += size;
    this.#ends.push(this.#at);
    for (const entry of entries) this.#add(entry);
  }

  /** In a transaction: inserts them all. `columns`: of the table, that of the numbers first. */
  insertInto(connection: Connection, table: string, columns: readonly string[]): void {
    const row = `(${columns.map(() => '?').join()})`;
    // `or fail`: the caller's savepoint undoes a statement that fails. SQLite would write a journal of its own for each.
    const sqlOf = (rows: number) =>
      `insert or fail into ${table}(${columns.join()}) values ${Array<string>(rows).fill(row).join()}`;
    const width = columns.length - 1;
    const many = sqlOf(ROWS_AT_ONCE);
    const one = sqlOf(1);
    let at = 0;
    for (; at + ROWS_AT_ONCE <= this.rows; at += ROWS_AT_ONCE)
      connection.run(many, ...this.#values(at, at + ROWS_AT_ONCE, width));
    for (; at < this.rows; at++) connection.run(one, ...this.#values(at, at + 1, width));
  }

  /** The values of rows, each of which has `width` of them behind its number. */
  #values(from: number, to: number, width: number): SqlValue[] {
    const values: SqlValue[] = [];
    let start = this.#ends[from * width - 1] ?? 0;
    for (let row = from; row < to; row++) {
      values.push(this.#numbers[row] ?? null);
      for (let value = row * width; value < (row + 1) * width; value++) {
        const end = this.#ends[value] ?? start;
        values.push(end > start ? this.#bytes.subarray(start, end) : null);
        start = end;
      }
    }
    return values;
  }

  #add(value: Uint8Array | null): void {
    if (value) {
      this.#room(value.length);
      this.#bytes.set(value, this.#at);
      this.#at += value.length;
    }
    this.#ends.push(this.#at);
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(2 * (this.#at + bytes));
    larger.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = larger;
  }
}
