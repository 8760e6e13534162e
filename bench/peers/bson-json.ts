import { Decimal128 } from 'mongodb';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const HEX = Buffer.from('0123456789abcdef');
const ZERO = 0x30;
const DAY_MS = 86_400_000;

/**
 * The maximum growth from BSON to JSON. An escaped control character is six times as long, and nothing in
 * BSON grows more.
 */
const MOST_GROWTH = 6;
const SPARE = 1024;

/** The last day written. Neighbouring rows often share it. */
let day = NaN;
let dayText = '';
/** It grows to the largest batch, so that only the text itself is allocated for each batch. */
let scratch = Buffer.alloc(0);

/**
 * Writes JSON bytes from BSON bytes, in plain JavaScript. It supports the types of ordinary documents. Throws
 * RangeError for others.
 */
export class JsonBytes {
  #at = 0;

  /** Only one may be in use at a time: all write into the same scratch memory. */
  constructor(rows: readonly Uint8Array[]) {
    const size = rows.reduce((sum, row) => sum + row.length, 0) * MOST_GROWTH + SPARE;
    if (scratch.length < size) scratch = Buffer.allocUnsafeSlow(size);
  }

  /** A copy of the bytes written. */
  bytes(): Buffer {
    return Buffer.from(scratch.subarray(0, this.#at));
  }

  /** Writes ASCII text. */
  text(text: string): void {
    for (let i = 0; i < text.length; i++) scratch[this.#at++] = text.charCodeAt(i);
  }

  /** Writes a document. Its `_id` becomes `id`. */
  item(row: Buffer): void {
    this.#document(row, 0, false, true);
  }

  #document(row: Buffer, start: number, isArray: boolean, isItem: boolean): number {
    let at = start + 4;
    scratch[this.#at++] = isArray ? BRACKET_OPEN : BRACE_OPEN;
    for (let type = row[at++]; type !== 0 && type !== undefined; type = row[at++]) {
      const name = at;
      while (row[at] !== 0) at++;
      if (name > start + 5) scratch[this.#at++] = COMMA;
      if (!isArray) {
        const hidden = isItem && at - name === 3 && row.toString('latin1', name, at) === '_id' ? 1 : 0;
        this.#string(row, name + hidden, at);
        scratch[this.#at++] = COLON;
      }
      at = this.#value(row, at + 1, type);
    }
    scratch[this.#at++] = isArray ? BRACKET_CLOSE : BRACE_CLOSE;
    return at;
  }

  /** Writes the value at `at` and returns the index of the next element. */
  #value(row: Buffer, at: number, type: number): number {
    switch (type) {
      case 0x01: {
        const value = row.readDoubleLE(at);
        this.text(Number.isFinite(value) ? String(value) : 'null');
        return at + 8;
      }
      case 0x02: {
        const end = at + 4 + row.readInt32LE(at);
        this.#string(row, at + 4, end - 1);
        return end;
      }
      case 0x03:
      case 0x04:
        return this.#document(row, at, type === 0x04, false);
      case 0x07:
        this.#objectId(row, at);
        return at + 12;
      case 0x08:
        this.text(row[at] === 1 ? 'true' : 'false');
        return at + 1;
      case 0x09:
        this.#date(Number(row.readBigInt64LE(at)));
        return at + 8;
      case 0x0a:
        this.text('null');
        return at;
      case 0x10:
        this.text(String(row.readInt32LE(at)));
        return at + 4;
      case 0x12:
        this.text(String(row.readBigInt64LE(at)));
        return at + 8;
      case 0x13:
        this.text(new Decimal128(row.subarray(at, at + 16)).toString());
        return at + 16;
      default:
        throw new RangeError(`no JSON form for BSON type ${type}`);
    }
  }

  #string(row: Buffer, from: number, to: number): void {
    scratch[this.#at++] = QUOTE;
    for (let i = from; i < to; i++) {
      const byte = row[i] ?? 0;
      if (byte < 0x20 || byte === QUOTE || byte === BACKSLASH)
        this.text(JSON.stringify(String.fromCharCode(byte)).slice(1, -1));
      else scratch[this.#at++] = byte;
    }
    scratch[this.#at++] = QUOTE;
  }

  #objectId(row: Buffer, from: number): void {
    scratch[this.#at++] = QUOTE;
    for (let i = from; i < from + 12; i++) {
      const byte = row[i] ?? 0;
      scratch[this.#at++] = HEX[byte >> 4] ?? 0;
      scratch[this.#at++] = HEX[byte & 15] ?? 0;
    }
    scratch[this.#at++] = QUOTE;
  }

  #date(time: number): void {
    const days = Math.floor(time / DAY_MS);
    if (days !== day) {
      day = days;
      dayText = `"${new Date(days * DAY_MS).toISOString().slice(0, 11)}`;
    }
    const rest = time - days * DAY_MS;
    this.text(dayText);
    this.#twoDigits(Math.floor(rest / 3_600_000), COLON);
    this.#twoDigits(Math.floor(rest / 60_000) % 60, COLON);
    this.#twoDigits(Math.floor(rest / 1000) % 60, 0x2e);
    scratch[this.#at++] = ZERO + Math.floor((rest % 1000) / 100);
    this.#twoDigits(rest % 100, 0x5a);
    scratch[this.#at++] = QUOTE;
  }

  #twoDigits(value: number, then: number): void {
    scratch[this.#at++] = ZERO + Math.floor(value / 10);
    scratch[this.#at++] = ZERO + (value % 10);
    scratch[this.#at++] = then;
  }
}
