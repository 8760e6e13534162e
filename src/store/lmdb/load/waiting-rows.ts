import type { Key } from '../../keys.ts';
import { KeyScratch } from '../tables.ts';
import type { Appender } from './appender.ts';

/** Bytes of keys at first. */
const FIRST_BYTES = 256 * 1024;

/** Rows in ascending order of their keys that wait for a transaction. */
export class WaitingRows {
  /** Bytes of all documents. */
  bytes = 0;
  readonly #documents: Uint8Array[] = [];
  /** Where the key of each row ends in `#keys`. */
  readonly #ends: number[] = [];
  #keys = new Uint8Array(FIRST_BYTES);
  #end = 0;

  get count(): number {
    return this.#documents.length;
  }

  /** Adds a row whose key is the first bytes of `key`. */
  add(document: Uint8Array, key: Key, length: number): void {
    while (this.#end + length > this.#keys.length) this.#grow();
    const keys = this.#keys;
    let at = this.#end;
    for (let n = 0; n < length; n++) keys[at++] = key[n] ?? 0;
    this.#ends.push((this.#end = at));
    this.#documents.push(document);
    this.bytes += document.length;
  }

  /** In a transaction: writes the rows. */
  writeTo(table: Appender): void {
    const key = new KeyScratch();
    let start = 0;
    for (const [n, document] of this.#documents.entries()) {
      const end = this.#ends[n] ?? 0;
      key.copy(this.#keys, start, end);
      table.put(key, document);
      start = end;
    }
  }

  #grow(): void {
    const larger = new Uint8Array(2 * this.#keys.length);
    larger.set(this.#keys);
    this.#keys = larger;
  }
}
