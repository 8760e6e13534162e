import { KeyWriter } from '../../values/key-writer.ts';
import type { Key } from '../../values/keys.ts';
import type { RowCheck } from '../../values/row-check.ts';
import { StoredRows } from '../file/checked-rows.ts';
import type { IndexRecord } from '../file/collections.ts';
import { writeKeys, type KeyedRow } from '../file/keyed.ts';
import type { PackedRows } from '../file/maintenance.ts';

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
  /** See `packed`. */
  #shared = new SharedArrayBuffer(0);
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
  add(
    number: number,
    document: Uint8Array,
    indexes: readonly IndexRecord[],
    check?: RowCheck,
  ): KeyedRow['unusable'] | string {
    const keys = this.#keys;
    const from = keys.at;
    const first = this.#keyEnds.length;
    const unusable = writeKeys(document, indexes, keys, this.#keyEnds, check);
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

  /** Copies them into a memory that a thread may read, until this is called again. */
  packed(): PackedRows {
    const { rows } = this;
    const keys = this.#keys.between(0, this.#keys.at);
    const documents = this.#documents.between(0, this.#documents.length);
    const numberBytes = rows * Float64Array.BYTES_PER_ELEMENT;
    const endBytes = (this.#keyEnds.length + rows) * Int32Array.BYTES_PER_ELEMENT;
    const needed = numberBytes + endBytes + keys.length + documents.length;
    if (this.#shared.byteLength < needed) this.#shared = new SharedArrayBuffer(2 * needed);
    const shared = this.#shared;
    const keyEnds = new Int32Array(shared, numberBytes, this.#keyEnds.length);
    const documentEnds = new Int32Array(shared, numberBytes + keyEnds.byteLength, rows);
    const packed = {
      numbers: new Float64Array(shared, 0, rows),
      keyEnds,
      documentEnds,
      keys: new Uint8Array(shared, numberBytes + endBytes, keys.length),
      documents: new Uint8Array(shared, numberBytes + endBytes + keys.length, documents.length),
    };
    packed.numbers.set(this.#numbers);
    keyEnds.set(this.#keyEnds);
    documentEnds.set(this.#documentEnds);
    packed.keys.set(keys);
    packed.documents.set(documents);
    return packed;
  }
}
