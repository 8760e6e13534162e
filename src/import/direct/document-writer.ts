import { BSON_TYPE } from '../../store/bson-types.ts';

/** The size of a slab in bytes. One allocation holds thousands of documents. */
const SLAB_BYTES = 1024 * 1024;

/**
 * Writes BSON documents, one behind the other, into slabs. The bytes of a finished document never change. `begin` makes
 * room for a whole document, so single writes are not checked.
 */
export class DocumentWriter {
  bytes: Uint8Array = new Uint8Array(0);
  /** Where the next byte goes. */
  at = 0;
  /** Whether all text of the document is ASCII. Whoever writes other text sets it. */
  isAscii = true;
  #view = new DataView(this.bytes.buffer);
  #start = 0;

  /** Begins a document of at most `most` bytes, in place of one that was not ended. */
  begin(most: number): void {
    if (this.#start + most > this.bytes.length) {
      this.bytes = new Uint8Array(Math.max(SLAB_BYTES, most));
      this.#view = new DataView(this.bytes.buffer);
      this.#start = 0;
    }
    this.at = this.#start + 4;
    this.isAscii = true;
  }

  /** Ends the document, and returns its bytes. */
  end(): Uint8Array {
    this.close(this.#start);
    const document = this.bytes.subarray(this.#start, this.at);
    this.#start = this.at;
    return document;
  }

  /** Begins the value of a nested document. Returns the place that `close` needs. */
  open(): number {
    const start = this.at;
    this.at += 4;
    return start;
  }

  /** Ends the value of a nested document. */
  close(start: number): void {
    this.bytes[this.at++] = 0;
    this.#view.setInt32(start, this.at - start, true);
  }

  /** Begins an element. `name` ends with a NUL. */
  element(type: number, name: Uint8Array): void {
    const bytes = this.bytes;
    let at = this.at;
    bytes[at++] = type;
    let from = 0;
    while (from < name.length) bytes[at++] = name[from++] ?? 0;
    this.at = at;
  }

  /** An element of a number: an int32 when it is one, otherwise a double. The bson library decides so as well. */
  number(name: Uint8Array, value: number): void {
    const isInt32 = (value | 0) === value && !Object.is(value, -0);
    this.element(isInt32 ? BSON_TYPE.int32 : BSON_TYPE.double, name);
    if (isInt32) this.#view.setInt32(this.at, value, true);
    else this.#view.setFloat64(this.at, value, true);
    this.at += isInt32 ? 4 : 8;
  }

  /** The value of a date, in milliseconds since 1970. */
  milliseconds(value: number): void {
    const high = Math.floor(value / 2 ** 32);
    this.#view.setUint32(this.at, value - high * 2 ** 32, true);
    this.#view.setInt32(this.at + 4, high, true);
    this.at += 8;
  }

  /** Ends a string, whose text was written behind `start`, where `open` made room for its length. */
  closeText(start: number): void {
    this.bytes[this.at++] = 0;
    this.#view.setInt32(start, this.at - start - 4, true);
  }

  /** The number of bytes of the text at `at`, where a string's value begins. */
  textLength(at: number): number {
    return this.#view.getInt32(at, true) - 1;
  }

  double(at: number): number {
    return this.#view.getFloat64(at, true);
  }

  /** Moves the bytes of an element to the front of the document. */
  moveToFront(from: number, to: number): void {
    const first = this.#start + 4;
    if (from === first) return;
    const element = this.bytes.slice(from, to);
    this.bytes.copyWithin(first + element.length, first, from);
    this.bytes.set(element, first);
  }
}

/** The bytes of a name with the NUL that ends it. */
export function nameBytes(name: string): Uint8Array {
  return Uint8Array.from(Buffer.from(`${name}\0`));
}
