import type { Key } from '../../keys.ts';
import type { Database, KeyScratch } from '../tables.ts';

const APPEND = { append: true };

/**
 * Writes keys in ascending order. They are appended, which costs half as much as to look up the place of each. Where
 * another set of the same table has higher keys, each place is looked up.
 */
export class Appender {
  readonly #table: Database;
  #isHighest = true;

  constructor(table: Database) {
    this.#table = table;
  }

  /** In a transaction. */
  put(key: Key | KeyScratch, value: Uint8Array): void {
    if (this.#isHighest && this.#table.putSync(key, value, APPEND)) return;
    this.#isHighest = false; // lmdb refused the key, because the table has a higher one
    this.#table.putSync(key, value);
  }
}
