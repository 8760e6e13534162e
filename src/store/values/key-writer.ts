import type { BsonElement } from './bson-elements.ts';
import { BSON_RANK, BSON_TYPE, doubleAt, int32At } from './bson-types.ts';
import type { Key } from './keys.ts';
import { keyOfAny } from './order.ts';

/** The size of a slab in bytes. One allocation holds thousands of keys. */
const SLAB_BYTES = 128 * 1024;
/** The bytes of the key of a double: its rank, and the double made sortable. */
const DOUBLE_KEY_BYTES = 9;
/** The bytes of a string in BSON before its text: its length. */
const LENGTH_BYTES = 4;

/**
 * Writes the keys of rows, one behind the other, into slabs: a memory for each would be most of what keys cost. They are the
 * keys that order.ts gives. Places are offsets from the beginning of the row's keys, which move together when a slab is full.
 */
export class KeyWriter {
  #bytes = new Uint8Array(0);
  #view = new DataView(this.#bytes.buffer);
  #start = 0;
  #at = 0;

  /** Begins the keys of a row. */
  begin(): void {
    this.#start = this.#at;
  }

  /** Begins anew in the memory of keys that nobody has any more. */
  clear(): void {
    this.#start = 0;
    this.#at = 0;
  }

  /** The place of the next byte. */
  get at(): number {
    return this.#at - this.#start;
  }

  /** The bytes that were written from a place on. They never change. */
  from(place: number): Key {
    return this.#bytes.subarray(this.#start + place, this.#at);
  }

  /** The bytes between two places, until more are written. */
  between(from: number, to: number): Key {
    return new Uint8Array(this.#bytes.buffer, this.#start + from, to - from);
  }

  /** Writes what stands between two places once more. */
  again(from: number, to: number): void {
    this.#room(to - from);
    this.#bytes.copyWithin(this.#at, this.#start + from, this.#start + to);
    this.#at += to - from;
  }

  /** Whether what stands between two places is below what stands between two others: see compareKeys. */
  isBelow(from: number, to: number, otherFrom: number, otherTo: number): boolean {
    const bytes = this.#bytes;
    const start = this.#start;
    const length = Math.min(to - from, otherTo - otherFrom);
    for (let n = 0; n < length; n++) {
      const byte = bytes[start + from + n] ?? 0;
      const other = bytes[start + otherFrom + n] ?? 0;
      if (byte !== other) return byte < other;
    }
    return to - from < otherTo - otherFrom;
  }

  /** Takes back what was written from a place on. */
  rewind(place: number): void {
    this.#at = this.#start + place;
  }

  put(key: Key): void {
    this.#room(key.length);
    this.#bytes.set(key, this.#at);
    this.#at += key.length;
  }

  /** Writes the key of a value in a document. */
  value(document: Uint8Array, { type, valueAt, end }: BsonElement): void {
    if (type === BSON_TYPE.string && this.#text(document, valueAt + LENGTH_BYTES, end - 1)) return;
    if (type === BSON_TYPE.double) this.#double(doubleAt(document, valueAt));
    else if (type === BSON_TYPE.int32) this.#double(int32At(document, valueAt));
    else this.put(keyOfAny({ type, bytes: document.subarray(valueAt, end) }));
  }

  /** Writes the key of a text. Returns false when it has a NUL, and writes nothing. */
  #text(document: Uint8Array, from: number, to: number): boolean {
    this.#room(to - from + 3);
    const bytes = this.#bytes;
    let at = this.#at;
    bytes[at++] = BSON_RANK.string;
    for (let n = from; n < to; n++) {
      const byte = document[n] ?? 0;
      if (byte === 0) return false;
      bytes[at++] = byte;
    }
    bytes[at++] = 0;
    bytes[at++] = 0;
    this.#at = at;
    return true;
  }

  /** Writes the key of a double, as numberKey makes it. */
  #double(double: number): void {
    this.#room(DOUBLE_KEY_BYTES);
    const view = this.#view;
    const at = this.#at + 1;
    this.#bytes[this.#at] = BSON_RANK.number;
    this.#at += DOUBLE_KEY_BYTES;
    view.setFloat64(at, double + 0); // + 0 turns -0 into 0
    const high = view.getInt32(at);
    if (Number.isNaN(double)) view.setFloat64(at, 0);
    else if (high >= 0) view.setInt32(at, high | 0x8000_0000);
    else {
      view.setInt32(at, ~high);
      view.setInt32(at + 4, ~view.getInt32(at + 4));
    }
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const written = this.#bytes.subarray(this.#start, this.#at);
    this.#bytes = new Uint8Array(Math.max(SLAB_BYTES, 2 * (written.length + bytes)));
    this.#bytes.set(written);
    this.#view = new DataView(this.#bytes.buffer);
    this.#start = 0;
    this.#at = written.length;
  }
}
