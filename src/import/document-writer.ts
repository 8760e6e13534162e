import { BSON_TYPE } from '../store/values/bson-types.ts';
import { BSON } from '../store/values/bson.ts';

/** The size of a slab in bytes. One allocation holds thousands of documents. */
const SLAB_BYTES = 1024 * 1024;
/** Bytes that are always free: for a value of fixed length, and for the ends of all documents that may be open. */
const SPARE_BYTES = 128;
/** Where the value begins in a document of one element without a name, behind the length, the type and a NUL. */
const VALUE_AT = 6;
/** Where the first element of a document begins. */
export const FIRST = 4;
/** Below this length a loop is faster than `set`. Bytes. */
const SHORT_BYTES = 32;

/**
 * Writes BSON documents, one behind the other, into slabs. The bytes of a finished document never change. Places in the
 * document are offsets from its beginning, because a document that outgrows its slab moves to another one.
 */
export class DocumentWriter {
  bytes: Uint8Array = new Uint8Array(0);
  /** The index in `bytes` where the next byte goes. */
  at = 0;
  #view = new DataView(this.bytes.buffer);
  #start = 0;

  /** Begins a document, in place of one that was not ended. */
  begin(): void {
    this.at = this.#start;
    this.room(0);
    this.at += FIRST;
  }

  end(): Uint8Array {
    this.close(0);
    const document = this.bytes.subarray(this.#start, this.at);
    this.#start = this.at;
    return document;
  }

  /** The offset of the next byte. */
  get offset(): number {
    return this.at - this.#start;
  }

  /** Takes back all that was written from an offset on. */
  rewind(offset: number): void {
    this.at = this.#start + offset;
  }

  /** Makes room for this number of bytes. It may replace `bytes` and change `at`. */
  room(bytes: number): void {
    if (this.at + bytes + SPARE_BYTES <= this.bytes.length) return;
    const written = this.bytes.subarray(this.#start, this.at);
    this.bytes = new Uint8Array(Math.max(SLAB_BYTES, 2 * written.length + bytes + SPARE_BYTES));
    this.bytes.set(written);
    this.#view = new DataView(this.bytes.buffer);
    this.#start = 0;
    this.at = written.length;
  }

  /** Begins a value that begins with its length: a document, or a text. Returns the offset that ends it. */
  open(): number {
    this.at += 4;
    return this.offset - 4;
  }

  /** Begins an element of a string, whose text is written next. Returns what closeText takes. */
  openText(name: Uint8Array): number {
    this.element(BSON_TYPE.string, name);
    return this.open();
  }

  /** Ends the value of a nested document. */
  close(offset: number): void {
    this.bytes[this.at++] = 0;
    this.#view.setInt32(this.#start + offset, this.offset - offset, true);
  }

  /** Ends a string, whose text was written behind its length. */
  closeText(offset: number): void {
    this.bytes[this.at++] = 0;
    this.#view.setInt32(this.#start + offset, this.offset - offset - 4, true);
  }

  /** Begins an element. `name` ends with a NUL. */
  element(type: number, name: Uint8Array): void {
    this.room(name.length);
    const bytes = this.bytes;
    let at = this.at;
    bytes[at++] = type;
    let from = 0;
    while (from < name.length) bytes[at++] = name[from++] ?? 0;
    this.at = at;
  }

  /** An element of a number: an int32 when it is one, otherwise a double. The bson library decides so as well. */
  number(name: Uint8Array, value: number): void {
    if ((value | 0) !== value || Object.is(value, -0)) {
      this.double(name, value);
      return;
    }
    this.element(BSON_TYPE.int32, name);
    this.#view.setInt32(this.at, value, true);
    this.at += 4;
  }

  double(name: Uint8Array, value: number): void {
    this.element(BSON_TYPE.double, name);
    this.#view.setFloat64(this.at, value, true);
    this.at += 8;
  }

  /** An element of a date, in milliseconds since 1970. */
  date(name: Uint8Array, milliseconds: number): void {
    this.element(BSON_TYPE.date, name);
    const high = Math.floor(milliseconds / 2 ** 32);
    this.#view.setUint32(this.at, milliseconds - high * 2 ** 32, true);
    this.#view.setInt32(this.at + 4, high, true);
    this.at += 8;
  }

  /** An element of any value of the bson library. */
  value(name: Uint8Array, value: unknown): void {
    if (typeof value === 'number') {
      this.number(name, value);
      return;
    }
    if (value instanceof Date) {
      this.date(name, value.getTime());
      return;
    }
    const single = BSON.serialize({ '': value });
    this.element(single[4] ?? 0, name);
    this.put(single.subarray(VALUE_AT, -1));
  }

  put(source: Uint8Array, from = 0, to = source.length): void {
    this.room(to - from);
    const { bytes } = this;
    let { at } = this;
    this.at += to - from;
    if (to - from < SHORT_BYTES) while (from < to) bytes[at++] = source[from++] ?? 0;
    else bytes.set(source.subarray(from, to), at);
  }

  /** An element of a text of ASCII. */
  ascii(name: Uint8Array, text: string): void {
    const start = this.openText(name);
    this.room(text.length);
    for (let n = 0; n < text.length; n++) this.bytes[this.at++] = text.charCodeAt(n);
    this.closeText(start);
  }

  /** The byte at an offset: the type of the element there. */
  byteAt(offset: number): number {
    return this.bytes[this.#start + offset] ?? 0;
  }

  /** The length of the value of an element, in bytes. `to` is the offset behind the element. */
  valueLength(offset: number, to: number): number {
    let nul = this.#start + offset + 1;
    while (this.bytes[nul] !== 0) nul++;
    return this.#start + to - nul - 1;
  }

  /** The value of an element as BSON, without its type and name. `to` is the offset behind the element. */
  bytesAt(offset: number, to = this.offset): Uint8Array {
    const element = this.bytes.subarray(this.#start + offset, this.#start + to);
    return element.subarray(element.indexOf(0, 1) + 1);
  }

  /** Moves an element to the front of the document, under a name. */
  moveToFront(from: number, to: number, name: Uint8Array): void {
    if (from === FIRST) {
      this.#rename(from, name);
      return;
    }
    const type = this.byteAt(from);
    const value = this.bytesAt(from, to).slice();
    const size = 1 + name.length + value.length;
    this.room(size);
    const first = this.#start + FIRST;
    const behind = this.at + size - (to - from);
    this.bytes.copyWithin(this.#start + from, this.#start + to, this.at);
    this.bytes.copyWithin(first + size, first, behind - size);
    this.at = first;
    this.element(type, name);
    this.put(value);
    this.at = behind;
  }

  #rename(offset: number, name: Uint8Array): void {
    this.room(name.length);
    const { bytes } = this;
    const at = this.#start + offset + 1;
    let valueAt = at;
    while (bytes[valueAt] !== 0) valueAt++;
    valueAt++;
    bytes.copyWithin(at + name.length, valueAt, this.at);
    for (let n = 0; n < name.length; n++) bytes[at + n] = name[n] ?? 0;
    this.at += at + name.length - valueAt;
  }
}

/** The bytes of a name with the NUL that ends it. */
export function nameBytes(name: string): Uint8Array {
  return Uint8Array.from(Buffer.from(`${name}\0`));
}
