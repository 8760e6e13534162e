import type { Key } from '../../keys.ts';
import type { KeyScratch } from '../tables.ts';

/** LMDB's longest key is shorter. Bytes. */
const LONGEST_KEY = 2_048;

/**
 * The key of a row and the keys of its index entries, one behind the other in a buffer that the next row overwrites: a
 * load makes them for every row, and a new array for each would cost more than sorting it.
 */
export class RowKeys {
  /** The key of the row is in front. */
  readonly bytes: Uint8Array;
  /** The number of bytes of the row's key. */
  idEnd = 0;
  /** Where each entry's key ends. It begins where the one before it ends. An index without an entry of the row has an empty one. */
  readonly ends: Int32Array;
  /** The number of bytes of the row's key that entries do not end with. */
  readonly #prefix: number;
  #count = 0;
  #end = 0;

  /** `prefix`: the number of bytes in front of the id in the row's key. */
  constructor(indexes: number, prefix = 0) {
    this.bytes = new Uint8Array((1 + indexes) * LONGEST_KEY);
    this.ends = new Int32Array(indexes);
    this.#prefix = prefix;
  }

  /** The row's key. A copy. */
  get id(): Key {
    return this.bytes.slice(0, this.idEnd);
  }

  /** Whether the row's key is above another. LMDB uses the same order. */
  isAbove(last: KeyScratch): boolean {
    const { bytes, idEnd } = this;
    const shorter = Math.min(idEnd, last.length);
    for (let at = 0; at < shorter; at++) {
      const difference = (bytes[at] ?? 0) - (last.bytes[at] ?? 0);
      if (difference !== 0) return difference > 0;
    }
    return idEnd > last.length;
  }

  /** Where the key of an entry begins. */
  startOf(index: number): number {
    return index === 0 ? this.idEnd : (this.ends[index - 1] ?? 0);
  }

  /** Begins a row whose key was written into `bytes`. */
  beginWritten(idEnd: number): void {
    this.idEnd = this.#end = idEnd;
    this.#count = 0;
  }

  begin(key: Key): void {
    this.bytes.set(key);
    this.beginWritten(key.length);
  }

  /** Adds the next entry, whose key consists of these parts. None: the index has no entry of the row. */
  addEntry(...parts: readonly Key[]): void {
    for (const part of parts) {
      this.bytes.set(part, this.#end);
      this.#end += part.length;
    }
    this.ends[this.#count++] = this.#end;
  }

  /** Adds the next entry, whose key is that of the values from `from` to `to`, and the id. */
  addEntryOf(values: Uint8Array, from: number, to: number): void {
    const { bytes, idEnd } = this;
    let end = this.#end;
    for (let at = from; at < to; at++) bytes[end++] = values[at] ?? 0;
    for (let at = this.#prefix; at < idEnd; at++) bytes[end++] = bytes[at] ?? 0;
    this.ends[this.#count++] = this.#end = end;
  }
}
