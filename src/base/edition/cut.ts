/**
 * Where chunks end: the rule of editions, for the server and its clients. It reads rows as NDJSON, in pieces of any size, and
 * makes no object a row. A chunk ends behind a line when
 *
 *     mix(crc32(id)) / 2^32 < bytes(line) / target      or      bytes(chunk) >= 8 * target
 *
 * `id` is the JSON text of the line's first member, `mix` the finalizer of MurmurHash3, and a line has its LF. So a bound
 * belongs to a row, whatever stands around it: a row that is inserted, changed or removed leaves all other bounds where they
 * are. test/editions/cuts.json has cases for other languages.
 */
export class Cutter {
  /** Of the chunk under way. Behind an end: of the one that ended, until the next bytes. */
  rows = 0;
  bytes = 0;
  readonly #target: number;
  #isOver = false;
  /** Bytes of the line under way. */
  #line = 0;
  #part: Part = 'name';
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  #crc = -1;

  /** `target`: bytes of a chunk, an integer of at least 1. */
  constructor(target: number) {
    this.#target = target;
  }

  /** Takes the bytes of a piece from `start` on. Returns the place behind the end of a chunk; -1: all are taken, and none ended. */
  take(piece: Uint8Array, start = 0): number {
    if (this.#isOver) this.#begin();
    for (let at = start; at < piece.length;) {
      const end = this.#part === 'rest' ? -1 : this.#toEndOfId(piece, at);
      const lf = piece.indexOf(LF, end < 0 ? at : end);
      const behind = lf < 0 ? piece.length : lf + 1;
      this.#line += behind - at;
      at = behind;
      if (lf >= 0 && this.#endLine()) return at;
    }
    return -1;
  }

  #begin(): void {
    this.#isOver = false;
    this.rows = 0;
    this.bytes = 0;
  }

  /** Whether the chunk ends behind the line. */
  #endLine(): boolean {
    const share = mix(~this.#crc) / 2 ** 32;
    this.rows++;
    this.bytes += this.#line;
    this.#isOver = share < this.#line / this.#target || this.bytes >= MOST_TARGETS * this.#target;
    this.#line = 0;
    this.#part = 'name';
    this.#depth = 0;
    this.#crc = -1;
    return this.#isOver;
  }

  /** Reads the first member. Returns where its value ends, or where the piece does. */
  #toEndOfId(piece: Uint8Array, start: number): number {
    let at = start;
    for (; at < piece.length && this.#part !== 'rest'; at++) {
      const byte = piece[at] ?? LF;
      if (byte === LF) this.#part = 'rest';
      else if (this.#isInText) this.#readText(byte);
      else this.#readMark(byte);
      if (this.#part === 'rest') break;
      if (this.#part === 'id') this.#crc = (this.#crc >>> 8) ^ (TABLE[(this.#crc ^ byte) & 0xff] ?? 0);
      else if (this.#part === 'colon') this.#part = 'id';
    }
    return at;
  }

  #readText(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === BACKSLASH) this.#isEscaped = true;
    else if (byte === QUOTE) this.#isInText = false;
  }

  /** A byte outside of texts. */
  #readMark(byte: number): void {
    if (byte === QUOTE) this.#isInText = true;
    else if (this.#part === 'name' && byte === COLON) this.#part = 'colon';
    else if (this.#depth === 1 && (byte === COMMA || byte === CLOSE)) this.#part = 'rest';
    else if (byte === OPEN || byte === OPEN_LIST) this.#depth++;
    else if (byte === CLOSE || byte === CLOSE_LIST) this.#depth--;
  }
}

/** What of a line is read: the name of its first member, the colon behind it, its value, or all behind that. */
type Part = 'name' | 'colon' | 'id' | 'rest';

/** A chunk ends at this many targets, whatever its ids: they may be chosen so that they avoid bounds. */
const MOST_TARGETS = 8;

const LF = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;

/** The CRC-32 of zlib, byte by byte: ids are so short that a call into zlib would cost more, and browsers have none. */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc >>> 0;
});

/** fmix32 of MurmurHash3. A CRC alone is linear: ids in sequence would show. */
function mix(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
