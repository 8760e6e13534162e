// AssemblyScript, compiled by build.mjs to transcode.wasm; not TypeScript, so tsc, eslint and prettier leave it alone.
//
// BSON rows in, JSON text out (the form is fixed in docstring of item.ts, which the tests hold this machine equal to).
// One machine serves every row: it writes small things (a number, a date, a short key) whole while MARGIN bytes are left
// of the output, long ones (strings, long keys, base64, spilled text) in pieces, and whenever less than MARGIN is left it
// puts its few variables into a State and returns. The next call goes on exactly there. So output is bounded whatever a
// row holds, and any number of passes interleave, each with a State of its own.
//
// Reading: every length is checked against the end of the document it stands in before anything behind it is read. 16
// bytes are loaded at once only where they lie inside the batch. Strings and keys end in a NUL that was checked before,
// and NUL is a special character to every loop here: none of them runs past its text.

// ---- what is imported: rare values are text from JavaScript

/** Writes a finite double as JavaScript prints it at `out` (at most 25 bytes); answers the length. */
@external("host", "number") declare function hostNumber(value: f64, out: usize): usize;
/** Writes the Decimal128 (16 bytes at `at`) at `out` (at most 48 bytes); answers the length. */
@external("host", "decimal") declare function hostDecimal(at: usize, out: usize): usize;
/** Keeps the Extended JSON of the value of BSON type `type` at [at, end) for `hostSpilled`; answers its length. */
@external("host", "extended") declare function hostExtended(type: i32, at: usize, end: usize): usize;
/** Copies the next `length` bytes of the kept text to `out`. */
@external("host", "spilled") declare function hostSpilled(out: usize, length: usize): void;

// ---- what a pass remembers between two calls

/** Deepest nesting, the row itself being level 1. */
const MAX_DEPTH: i32 = 100;
/** One step of the machine writes at most 70 bytes (comma, 16 of key, a date as Extended JSON) or 22 of a text and quotes. */
const MARGIN: usize = 96;

// @ts-ignore: decorator
@unmanaged class State {
  /** Next byte of input, and the end of the rows. */
  at: usize;
  end: usize;
  /** The terminator of the document the machine stands in; its level (0: between rows). */
  last: usize;
  depth: i32;
  /** 1 in an array, 1 when an element was written before in this document. */
  array: usize;
  comma: usize;
  /** The value's type when its key is written or under way, else 0. */
  type: i32;
  /** What is under way and where it ends; for SPILL how many bytes are left. */
  piece: i32;
  pieceEnd: usize;
  /** Where to go on after an `_id` that did not stand first, else 0. */
  resume: usize;
  /** Framing: 1 = a comma before each row but the first, 0 = LF behind each. `begun`: a row was written. */
  commas: i32;
  begun: i32;
  /** Rows of this batch written whole. */
  rows: i32;
  /** MAX_DEPTH words follow: the enclosing documents' `last`, top bit set for arrays. */
  stack: u32;
}

/** Bytes a State takes. */
export const STATE_SIZE: i32 = offsetof<State>("stack") + MAX_DEPTH * 4;

const NONE = 0, KEY = 1, TEXT = 2, BASE64 = 3, SPILL = 4;

// What `run` answers when a row is not sound; transcoder.ts has the words.
const UNSOUND = -1, TOO_DEEP = -2, NO_ID = -3;

/** A new encoder's State. `commas`: see State. */
export function open(s: State, commas: i32): void {
  memory.fill(changetype<usize>(s), 0, STATE_SIZE);
  s.commas = commas;
}

/** Starts with the rows at [at, end). */
export function begin(s: State, at: usize, end: usize): void {
  s.at = at;
  s.end = end;
  s.depth = 0;
  s.type = 0;
  s.piece = NONE;
  s.resume = 0;
  s.rows = 0;
}

/** Whether all rows are written. */
export function finished(s: State): bool {
  return s.depth == 0 && s.piece == NONE && s.type == 0 && s.at == s.end;
}

/** Rows of this batch written so far: for the message of an error. */
export function rowsDone(s: State): i32 {
  return s.rows;
}

// ---- BSON

const DOUBLE = 1, STRING = 2, DOCUMENT = 3, ARRAY = 4, BINARY = 5, UNDEFINED = 6, OBJECT_ID = 7, BOOLEAN = 8, DATE = 9;
const NULL = 10, REGEX = 11, POINTER = 12, CODE = 13, SYMBOL = 14, SCOPED = 15, INT32 = 16, TIMESTAMP = 17, INT64 = 18;
const DECIMAL = 19, MAX_KEY = 127, MIN_KEY = 255;

/** The value's end; 0 when it is unknown, or does not end by `last`, or its length or terminator is not sound. */
function valueEnd(type: i32, at: usize, last: usize): usize {
  let size: usize = 0;
  switch (type) {
    case DOUBLE: case DATE: case TIMESTAMP: case INT64: size = 8; break;
    case INT32: size = 4; break;
    case OBJECT_ID: size = 12; break;
    case DECIMAL: size = 16; break;
    case BOOLEAN: size = 1; break;
    case NULL: case UNDEFINED: case MIN_KEY: case MAX_KEY: break;
    case STRING: case CODE: case SYMBOL: case POINTER: {
      if (last - at < 5) return 0;
      size = <usize>load<u32>(at);
      if (size == 0 || size > last - at - 4) return 0;
      if (load<u8>(at + 3 + size) != 0) return 0;
      size += type == POINTER ? 16 : 4;
      break;
    }
    case DOCUMENT: case ARRAY: {
      if (last - at < 5) return 0;
      size = <usize>load<u32>(at);
      if (size < 5 || size > last - at || load<u8>(at + size - 1) != 0) return 0;
      break;
    }
    case BINARY: {
      if (last - at < 5) return 0;
      size = <usize>load<u32>(at);
      if (size > last - at - 5) return 0;
      // The old subtype 2 repeats the length inside.
      if (load<u8>(at + 4) == 2 && (size < 4 || <usize>load<u32>(at + 5) != size - 4)) return 0;
      size += 5;
      break;
    }
    case SCOPED: {
      if (last - at < 4) return 0;
      size = <usize>load<u32>(at);
      if (size < 4 || size > last - at) return 0;
      break;
    }
    case REGEX: {
      const pattern = findNul(at, last);
      if (pattern == 0) return 0;
      const options = findNul(pattern + 1, last);
      if (options == 0) return 0;
      size = options + 1 - at;
      break;
    }
    default: return 0;
  }
  return size <= last - at ? at + size : 0;
}

/** The first NUL at or behind `at` and before `last`; 0 when there is none. */
function findNul(at: usize, last: usize): usize {
  while (at < last) {
    if (load<u8>(at) == 0) return at;
    at++;
  }
  return 0;
}

/** Whether a top-level key [at, at + length) is not shown under its own name: `_id` (shown first, as `id`) and `id`. */
// @ts-ignore: decorator
@inline function isHidden(at: usize, length: usize): bool {
  return length == 3
    ? load<u8>(at) == 95 && load<u16>(at + 1) == 0x6469
    : length == 2 && load<u16>(at) == 0x6469;
}

/** The element `_id` of a document with its first element at `at`; 0 when there is none or the document is not sound. */
function findId(at: usize, last: usize): usize {
  while (at < last) {
    const type = <i32>load<u8>(at);
    const nul = findNul(at + 1, last);
    if (nul == 0) return 0;
    if (nul - at == 4 && isHidden(at + 1, 3)) return at;
    at = valueEnd(type, nul + 1, last);
    if (at == 0) return 0;
  }
  return 0;
}

// ---- the machine

/**
 * Writes JSON text to [out, limit), `limit - out` being at least 256; up to 64 bytes behind `limit` may be scribbled on.
 * Answers the number of bytes written (then ask `finished`), or a negative error.
 */
export function run(s: State, out: usize, limit: usize): i32 {
  const stop = limit - MARGIN;
  const end = s.end;
  let p = out;
  let o = s.at;
  let last = s.last;
  let depth = s.depth;
  let array = s.array;
  let comma = s.comma;
  let type = s.type;
  let piece = s.piece;
  let pieceEnd = s.pieceEnd;

  while (p <= stop) {
    if (piece == NONE) {
      if (type == 0) {
        if (depth == 0) {
          // Between rows: the array's element (0x03, a name nobody reads, NUL), then the document.
          if (o == end) break;
          if (load<u8>(o) != DOCUMENT) return UNSOUND;
          o = findNul(o + 1, end) + 1;
          if (o == 1 || end - o < 5) return UNSOUND;
          const size = <usize>load<u32>(o);
          if (size < 5 || size > end - o) return UNSOUND;
          last = o + size - 1;
          if (load<u8>(last) != 0) return UNSOUND;
          o += 4;
          const id = findId(o, last);
          if (id == 0) return NO_ID;
          s.resume = id == o ? 0 : o;
          type = load<u8>(id);
          o = id + 5;
          if (s.commas & s.begun) store<u8>(p++, 44);
          s.begun = 1;
          store<u64>(p, 0x3a226469227b); // {"id":
          p += 6;
          depth = 1;
          array = 0;
        } else {
          if (depth == 1 && s.resume != 0) { o = s.resume; s.resume = 0; }
          type = load<u8>(o);
          if (type == 0) {
            if (o == last) {
              o++;
              store<u8>(p++, array ? 93 : 125);
              depth--;
              if (depth == 0) {
                s.rows++;
                if (!s.commas) store<u8>(p++, 10);
              } else {
                const parent = load<u32>(changetype<usize>(s) + ((<usize>depth) << 2), offsetof<State>("stack"));
                last = parent & 0x7fffffff;
                array = parent >> 31;
                comma = 1;
              }
              continue;
            }
            return UNSOUND;
          }
          o++;
          store<u8>(p, 44);
          if (array) {
            o = findNul(o, last) + 1;
            if (o == 1) return UNSOUND;
            p += comma;
          } else {
            let length: usize = 16;
            if (o + 16 <= end) {
              const v = v128.load(o);
              length = ctz(specials(v) | 0x10000);
              store<u8>(p + comma, 34);
              v128.store(p + comma, v, 1);
            }
            if (length < 16 && load<u8>(o + length) == 0) {
              // A whole key without anything to escape.
              if (o + length >= last) return UNSOUND;
              if (depth == 1 && isHidden(o, length)) {
                o = valueEnd(type, o + length + 1, last);
                if (o == 0) return UNSOUND;
                type = 0;
                continue;
              }
              o += length + 1;
              p += comma + 1 + length;
              store<u16>(p, 0x3a22);
              p += 2;
            } else {
              pieceEnd = findNul(o, last);
              if (pieceEnd == 0) return UNSOUND;
              if (depth == 1 && isHidden(o, pieceEnd - o)) {
                o = valueEnd(type, pieceEnd + 1, last);
                if (o == 0) return UNSOUND;
                type = 0;
                continue;
              }
              p += comma;
              store<u8>(p++, 34);
              piece = KEY;
            }
          }
        }
      }
      if (piece == NONE) {
        const next = valueEnd(type, o, last);
        if (next == 0) return UNSOUND;
        comma = 1;
        switch (type) {
          case STRING:
            store<u8>(p++, 34);
            o += 4;
            pieceEnd = next - 1;
            piece = TEXT;
            break;
          case DOUBLE: p = writeDouble(load<f64>(o), p); o = next; break;
          case INT32: p = writeI64(<i64>load<i32>(o), p); o = next; break;
          case INT64: p = writeI64(load<i64>(o), p); o = next; break;
          case DECIMAL: p = writeDecimal128(o, p); o = next; break;
          case OBJECT_ID: {
            store<u8>(p, 34);
            writeHex(i64x2(load<u64>(o), <u64>load<u32>(o, 8)), p + 1);
            store<u8>(p, 34, 25);
            p += 26;
            o = next;
            break;
          }
          case DATE: p = writeDate(load<i64>(o), p); o = next; break;
          case BOOLEAN: {
            const value = load<u8>(o);
            if (value > 1) return UNSOUND;
            if (value) { store<u32>(p, 0x65757274); p += 4; } // true
            else { store<u64>(p, 0x65736c6166); p += 5; } // false
            o = next;
            break;
          }
          case NULL: case UNDEFINED: p = writeNull(p); o = next; break;
          case DOCUMENT: case ARRAY: {
            if (depth == MAX_DEPTH) return TOO_DEEP;
            store<u32>(
              changetype<usize>(s) + ((<usize>depth) << 2),
              <u32>last | (<u32>array << 31),
              offsetof<State>("stack"),
            );
            depth++;
            array = type == ARRAY;
            store<u8>(p++, array ? 91 : 123);
            last = next - 1;
            o += 4;
            comma = 0;
            type = 0;
            continue;
          }
          case BINARY: {
            if (load<u8>(o, 4) == 4 && next - o == 21) {
              p = writeUuid(o + 5, p);
              o = next;
            } else {
              store<u8>(p++, 34);
              o += load<u8>(o, 4) == 2 ? 9 : 5;
              pieceEnd = next;
              piece = BASE64;
            }
            break;
          }
          default: // Timestamp, regular expression, code, symbol, pointer, MinKey, MaxKey
            pieceEnd = hostExtended(type, o, next);
            o = next;
            piece = SPILL;
        }
        type = 0;
        if (piece == NONE) continue;
      }
    }

    if (piece <= TEXT) {
      p = writeText(o, pieceEnd, p, stop, end);
      o = reached;
      if (o != pieceEnd) break;
      store<u8>(p++, 34);
      if (piece == KEY) store<u8>(p++, 58);
      o++;
    } else if (piece == BASE64) {
      p = writeBase64(o, pieceEnd, p, stop);
      o = reached;
      if (o != pieceEnd) break;
      store<u8>(p++, 34);
    } else {
      const length = min(pieceEnd, limit - p);
      hostSpilled(p, length);
      p += length;
      pieceEnd -= length;
      if (pieceEnd != 0) break;
    }
    piece = NONE;
  }

  s.at = o;
  s.last = last;
  s.depth = depth;
  s.array = array;
  s.comma = comma;
  s.type = type;
  s.piece = piece;
  s.pieceEnd = pieceEnd;
  return <i32>(p - out);
}

// ---- text

/** A bit for each byte that is not plain: control characters, quote, backslash, and all of UTF-8 above ASCII. */
// @ts-ignore: decorator
@inline function specials(v: v128): i32 {
  return i8x16.bitmask(v128.or(
    v128.or(i8x16.eq(v, i8x16.splat(34)), i8x16.eq(v, i8x16.splat(92))),
    i8x16.lt_s(v, i8x16.splat(32)), // as signed bytes everything from 0x80 is below 0
  ));
}

/** Where writeText and writeBase64 stopped reading. */
let reached: usize = 0;

/** Writes [o, e), a NUL standing at `e`, until it is done or `p > stop`; `end` is that of the batch. */
function writeText(o: usize, e: usize, p: usize, stop: usize, end: usize): usize {
  while (o < e && p <= stop) {
    if (o + 16 <= end) {
      const v = v128.load(o);
      v128.store(p, v);
      const mask = specials(v);
      if (mask == 0) { o += 16; p += 16; continue; }
      const plain = <usize>ctz(mask);
      o += plain;
      p += plain;
      if (o >= e) break;
    }
    const c = load<u8>(o);
    if (c >= 0x80) {
      do {
        const n = sequence(o);
        if (n > 0) {
          // Behind the sequence stand the text's NUL and at least one byte more of the row.
          store<u32>(p, load<u32>(o));
          o += n;
          p += n;
        } else {
          store<u32>(p, 0xbdbfef); // U+FFFD
          o -= n;
          p += 3;
        }
      } while (p <= stop && load<u8>(o) >= 0x80);
    } else {
      if (c >= 32 && c != 34 && c != 92) store<u8>(p++, c);
      else p = writeEscape(c, p);
      o++;
    }
  }
  reached = o;
  return p;
}

/**
 * The length of the UTF-8 sequence at `o`, a byte from 0x80; when it is broken, minus the number of bytes that WHATWG's
 * decoder replaces by one U+FFFD (https://encoding.spec.whatwg.org/#utf-8-decoder).
 */
// @ts-ignore: decorator
@inline function sequence(o: usize): isize {
  const a = load<u8>(o);
  if (a < 0xc2 || a > 0xf4) return -1;
  const b = load<u8>(o, 1);
  if (b < (a == 0xe0 ? 0xa0 : a == 0xf0 ? 0x90 : 0x80)) return -1;
  if (b > (a == 0xed ? 0x9f : a == 0xf4 ? 0x8f : 0xbf)) return -1;
  if (a < 0xe0) return 2;
  if ((load<u8>(o, 2) & 0xc0) != 0x80) return -2;
  if (a < 0xf0) return 3;
  if ((load<u8>(o, 3) & 0xc0) != 0x80) return -3;
  return 4;
}

/** For each control character the letter of its short escape, 0 where there is none. */
const SHORT = memory.data<u8>([
  0, 0, 0, 0, 0, 0, 0, 0, 98, 116, 110, 0, 102, 114, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
]);

/** Writes a quote, backslash or control character as JSON.stringify does: at most 6 bytes. */
function writeEscape(c: u8, p: usize): usize {
  store<u8>(p, 92);
  const letter = c < 32 ? load<u8>(SHORT + c) : c;
  if (letter) {
    store<u8>(p, letter, 1);
    return p + 2;
  }
  store<u32>(p, 0x30303075, 1); // u000
  store<u8>(p, 48 + (c >> 4), 4);
  const low = c & 15;
  store<u8>(p, low < 10 ? 48 + low : 87 + low, 5);
  return p + 6;
}

const BASE64_DIGITS = memory.data<u8>([
  65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90,
  97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119,
  120, 121, 122, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 43, 47,
]);

/** Writes [o, e) as base64 until it is done or `p > stop`; a stop is always between two groups of three. */
function writeBase64(o: usize, e: usize, p: usize, stop: usize): usize {
  while (e - o >= 3 && p <= stop) {
    const group = (<u32>load<u8>(o) << 16) | (<u32>load<u8>(o, 1) << 8) | <u32>load<u8>(o, 2);
    store<u8>(p, load<u8>(BASE64_DIGITS + (group >> 18)));
    store<u8>(p, load<u8>(BASE64_DIGITS + ((group >> 12) & 63)), 1);
    store<u8>(p, load<u8>(BASE64_DIGITS + ((group >> 6) & 63)), 2);
    store<u8>(p, load<u8>(BASE64_DIGITS + (group & 63)), 3);
    o += 3;
    p += 4;
  }
  const left = e - o;
  if ((left == 1 || left == 2) && p <= stop) {
    const group = (<u32>load<u8>(o) << 16) | (left == 2 ? <u32>load<u8>(o, 1) << 8 : 0);
    store<u32>(p, 0x3d3d3d3d);
    store<u8>(p, load<u8>(BASE64_DIGITS + (group >> 18)));
    store<u8>(p, load<u8>(BASE64_DIGITS + ((group >> 12) & 63)), 1);
    if (left == 2) store<u8>(p, load<u8>(BASE64_DIGITS + ((group >> 6) & 63)), 2);
    o = e;
    p += 4;
  }
  reached = o;
  return p;
}

/** Writes 16 bytes as 32 hexadecimal digits. */
// @ts-ignore: decorator
@inline function writeHex(v: v128, p: usize): void {
  const digits = i8x16(48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102);
  const high = i8x16.swizzle(digits, i8x16.shr_u(v, 4));
  const low = i8x16.swizzle(digits, v128.and(v, i8x16.splat(15)));
  v128.store(p, i8x16.shuffle(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
  v128.store(p, i8x16.shuffle(high, low, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), 16);
}

const SCRATCH = memory.data(32);

/** "8-4-4-4-12" (RFC 9562) */
function writeUuid(o: usize, p: usize): usize {
  writeHex(v128.load(o), SCRATCH);
  store<u8>(p, 34);
  store<u64>(p, load<u64>(SCRATCH), 1);
  store<u8>(p, 45, 9);
  store<u32>(p, load<u32>(SCRATCH, 8), 10);
  store<u8>(p, 45, 14);
  store<u32>(p, load<u32>(SCRATCH, 12), 15);
  store<u8>(p, 45, 19);
  store<u32>(p, load<u32>(SCRATCH, 16), 20);
  store<u8>(p, 45, 24);
  store<u64>(p, load<u64>(SCRATCH, 20), 25);
  store<u32>(p, load<u32>(SCRATCH, 28), 33);
  store<u8>(p, 34, 37);
  return p + 38;
}

// @ts-ignore: decorator
@inline function writeNull(p: usize): usize {
  store<u32>(p, 0x6c6c756e);
  return p + 4;
}

// ---- numbers

/** "00".."99" as 16-bit words. */
const PAIRS = memory.data<u16>([
  0x3030, 0x3130, 0x3230, 0x3330, 0x3430, 0x3530, 0x3630, 0x3730, 0x3830, 0x3930,
  0x3031, 0x3131, 0x3231, 0x3331, 0x3431, 0x3531, 0x3631, 0x3731, 0x3831, 0x3931,
  0x3032, 0x3132, 0x3232, 0x3332, 0x3432, 0x3532, 0x3632, 0x3732, 0x3832, 0x3932,
  0x3033, 0x3133, 0x3233, 0x3333, 0x3433, 0x3533, 0x3633, 0x3733, 0x3833, 0x3933,
  0x3034, 0x3134, 0x3234, 0x3334, 0x3434, 0x3534, 0x3634, 0x3734, 0x3834, 0x3934,
  0x3035, 0x3135, 0x3235, 0x3335, 0x3435, 0x3535, 0x3635, 0x3735, 0x3835, 0x3935,
  0x3036, 0x3136, 0x3236, 0x3336, 0x3436, 0x3536, 0x3636, 0x3736, 0x3836, 0x3936,
  0x3037, 0x3137, 0x3237, 0x3337, 0x3437, 0x3537, 0x3637, 0x3737, 0x3837, 0x3937,
  0x3038, 0x3138, 0x3238, 0x3338, 0x3438, 0x3538, 0x3638, 0x3738, 0x3838, 0x3938,
  0x3039, 0x3139, 0x3239, 0x3339, 0x3439, 0x3539, 0x3639, 0x3739, 0x3839, 0x3939,
]);

/** `value`, below 10^`width`, with leading zeros. */
// @ts-ignore: decorator
@inline function writePadded(value: u32, width: usize, p: usize): usize {
  let at = p + width;
  while (at >= p + 2) {
    at -= 2;
    const rest = value / 100;
    store<u16>(at, load<u16>(PAIRS + ((value - rest * 100) << 1)));
    value = rest;
  }
  if (at > p) store<u8>(p, <u8>(48 + value));
  return p + width;
}

// @ts-ignore: decorator
@inline function digitsOf(value: u32): usize {
  if (value < 100) return value < 10 ? 1 : 2;
  if (value < 10000) return value < 1000 ? 3 : 4;
  if (value < 1000000) return value < 100000 ? 5 : 6;
  if (value < 100000000) return value < 10000000 ? 7 : 8;
  return value < 1000000000 ? 9 : 10;
}

function writeU64(value: u64, p: usize): usize {
  if (value < 0x100000000) return writePadded(<u32>value, digitsOf(<u32>value), p);
  const rest = value / 100000000;
  return writePadded(<u32>(value - rest * 100000000), 8, writeU64(rest, p));
}

// @ts-ignore: decorator
@inline function writeI64(value: i64, p: usize): usize {
  if (value < 0) {
    store<u8>(p++, 45);
    value = -value; // the smallest i64 stays itself, which as u64 is right
  }
  return writeU64(<u64>value, p);
}

/** `digits` / 10^`places`, places being 1 to 27, without cutting zeros. */
function writePlaces(digits: u64, places: i32, p: usize): usize {
  const start = p + 1;
  p = writeU64(digits, start);
  // At least one digit stands before the point: leading zeros when there are too few.
  const missing = places + 1 - <i32>(p - start);
  if (missing > 0) {
    memory.copy(start + missing, start, p - start);
    memory.fill(start, 48, missing);
    p += missing;
  }
  // The digits before the point go one to the left.
  const point = p - places - 1;
  let at = start - 1;
  while (at < point) { store<u8>(at, load<u8>(at, 1)); at++; }
  store<u8>(point, 46);
  return p;
}

/**
 * A double as JavaScript prints it. It is the decimal m / 10^k when that division gives it back and m has at most 15
 * digits: no two decimals of 15 digits are the same double, so that is the shortest one, which JavaScript prints too.
 */
function writeDouble(value: f64, p: usize): usize {
  if (!(abs(value) < Infinity)) return writeNull(p); // NaN too
  if (value < 0) {
    store<u8>(p++, 45);
    value = -value;
  }
  const cents = nearest(value * 100);
  if (cents < 4294967296 && cents / 100 == value) {
    const whole = <u32>cents / 100;
    const rest = <u32>cents - whole * 100;
    p = writePadded(whole, digitsOf(whole), p);
    if (rest) {
      store<u8>(p, 46);
      store<u16>(p, load<u16>(PAIRS + (rest << 1)), 1);
      p += rest % 10 ? 3 : 2;
    }
    return p;
  }
  if (value < 9007199254740992 && floor(value) == value) return writeU64(<u64>value, p);
  if (value >= 0.000001) { // below, JavaScript prints an exponent
    if (value < 100000000000) {
      const m = nearest(value * 10000);
      if (m / 10000 == value && m < 1e15) return writeTrimmed(<u64>m, 4, p);
    }
    if (value < 1000000) {
      const m = nearest(value * 1000000000);
      if (m / 1000000000 == value && m < 1e15) return writeTrimmed(<u64>m, 9, p);
    }
  }
  return p + hostNumber(value, p);
}

/** `digits` / 10^`places` without trailing zeros, `digits` not being a multiple of 10^places. */
function writeTrimmed(digits: u64, places: i32, p: usize): usize {
  let tenth = digits / 10;
  while (tenth * 10 == digits) {
    digits = tenth;
    tenth = digits / 10;
    places--;
  }
  return writePlaces(digits, places, p);
}

/** Exact digits, in the notation of the Decimal128 specification, which is a JSON number; NaN and infinities are null. */
function writeDecimal128(o: usize, p: usize): usize {
  const high = load<u64>(o, 8);
  if (((high >> 59) & 15) == 15) return writeNull(p);
  const exponent = <i32>((high >> 49) & 0x3fff) - 6176;
  // What money looks like: up to 19 digits, up to 6 places. All other forms are JavaScript's to print.
  if ((high & 0x1ffffffffffff) == 0 && exponent <= 0 && exponent >= -6 && load<u64>(o) < 10000000000000000000) {
    if (high >> 63) store<u8>(p++, 45);
    return exponent == 0 ? writeU64(load<u64>(o), p) : writePlaces(load<u64>(o), -exponent, p);
  }
  return p + hostDecimal(o, p);
}

// ---- dates

const DAY: i64 = 86400000;
/** The day last printed: its first millisecond, the length of its text, the text ("2024-01-31T"). */
const DAY_CACHE = memory.data<u64>([0x7fffffffffffffff, 0, 0, 0]);

/** As Date.prototype.toISOString; beyond JavaScript's range as relaxed Extended JSON. */
function writeDate(value: i64, p: usize): usize {
  if (value > 8640000000000000 || value < -8640000000000000) return writeFarDate(value, p);
  let inDay = <u64>(value - load<i64>(DAY_CACHE));
  if (inDay >= <u64>DAY) {
    let day = value / DAY;
    if (day * DAY > value) day--;
    cacheDay(<i32>day);
    inDay = <u64>(value - day * DAY);
  }
  store<u8>(p, 34);
  v128.store(p, v128.load(DAY_CACHE, 16), 1);
  p += 1 + load<usize>(DAY_CACHE, 8);
  let rest = <u32>inDay;
  const hour = rest / 3600000;
  rest -= hour * 3600000;
  const minute = rest / 60000;
  rest -= minute * 60000;
  const second = rest / 1000;
  rest -= second * 1000;
  const tens = rest / 10;
  store<u16>(p, load<u16>(PAIRS + (hour << 1)));
  store<u8>(p, 58, 2);
  store<u16>(p, load<u16>(PAIRS + (minute << 1)), 3);
  store<u8>(p, 58, 5);
  store<u16>(p, load<u16>(PAIRS + (second << 1)), 6);
  store<u8>(p, 46, 8);
  store<u16>(p, load<u16>(PAIRS + (tens << 1)), 9);
  store<u8>(p, <u8>(48 + rest - tens * 10), 11);
  store<u16>(p, 0x225a, 12); // Z"
  return p + 14;
}

/** {"$date":{"$numberLong":"..."}} */
function writeFarDate(value: i64, p: usize): usize {
  store<u64>(p, 0x226574616424227b); // {"$date"
  store<u8>(p, 58, 8);
  store<u64>(p, 0x65626d756e24227b, 9); // {"$numbe
  store<u64>(p, 0x223a22676e6f4c72, 17); // rLong":"
  p = writeI64(value, p + 25);
  store<u32>(p, 0x7d7d22); // "}}
  return p + 3;
}

/** Puts a day (counted from 1970-01-01) into the cache; the calendar is Howard Hinnant's `civil_from_days`. */
function cacheDay(day: i32): void {
  const z = day + 719468;
  const era = (z >= 0 ? z : z - 146096) / 146097;
  const dayOfEra = <u32>(z - era * 146097);
  const yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146096) / 365;
  const dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100);
  const shifted = (5 * dayOfYear + 2) / 153;
  const month = shifted < 10 ? shifted + 3 : shifted - 9;
  const year = <i32>yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const text = DAY_CACHE + 16;
  let p = text;
  if (year >= 0 && year <= 9999) p = writePadded(<u32>year, 4, p);
  else {
    store<u8>(p, year < 0 ? 45 : 43);
    p = writePadded(<u32>abs(year), 6, p + 1);
  }
  store<u8>(p, 45);
  p = writePadded(month, 2, p + 1);
  store<u8>(p, 45);
  p = writePadded(dayOfYear - (153 * shifted + 2) / 5 + 1, 2, p + 1);
  store<u8>(p++, 84);
  store<i64>(DAY_CACHE, <i64>day * DAY);
  store<usize>(DAY_CACHE, p - text, 8);
}

// ---- XXH64 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), for ETags; one hash at a time

const PRIME1: u64 = 0x9e3779b185ebca87, PRIME2: u64 = 0xc2b2ae3d27d4eb4f, PRIME3: u64 = 0x165667b19e3779f9;
const PRIME4: u64 = 0x85ebca77c2b2ae63, PRIME5: u64 = 0x27d4eb2f165667c5;
let lane1: u64, lane2: u64, lane3: u64, lane4: u64, hashSeed: u64, hashed: u64;

// @ts-ignore: decorator
@inline function round(lane: u64, word: u64): u64 {
  return rotl(lane + word * PRIME2, 31) * PRIME1;
}

/** Begins a hash. */
export function hashBegin(seed: u64): void {
  lane1 = seed + PRIME1 + PRIME2;
  lane2 = seed + PRIME2;
  lane3 = seed;
  lane4 = seed - PRIME1;
  hashSeed = seed;
  hashed = 0;
}

/** Takes in `length` bytes, a multiple of 32. */
export function hashBlocks(at: usize, length: usize): void {
  hashed += length;
  for (const end = at + length; at < end; at += 32) {
    lane1 = round(lane1, load<u64>(at));
    lane2 = round(lane2, load<u64>(at, 8));
    lane3 = round(lane3, load<u64>(at, 16));
    lane4 = round(lane4, load<u64>(at, 24));
  }
}

/** Takes in the last `length` bytes, below 32, and answers the hash. */
export function hashEnd(at: usize, length: usize): u64 {
  let hash: u64;
  if (hashed) {
    hash = rotl(lane1, 1) + rotl(lane2, 7) + rotl(lane3, 12) + rotl(lane4, 18);
    hash = (hash ^ round(0, lane1)) * PRIME1 + PRIME4;
    hash = (hash ^ round(0, lane2)) * PRIME1 + PRIME4;
    hash = (hash ^ round(0, lane3)) * PRIME1 + PRIME4;
    hash = (hash ^ round(0, lane4)) * PRIME1 + PRIME4;
  } else hash = hashSeed + PRIME5;
  hash += hashed + length;
  const end = at + length;
  for (; end - at >= 8; at += 8) hash = rotl(hash ^ round(0, load<u64>(at)), 27) * PRIME1 + PRIME4;
  if (end - at >= 4) {
    hash = rotl(hash ^ (<u64>load<u32>(at) * PRIME1), 23) * PRIME2 + PRIME3;
    at += 4;
  }
  for (; at < end; at++) hash = rotl(hash ^ (<u64>load<u8>(at) * PRIME5), 11) * PRIME1;
  hash = (hash ^ (hash >> 33)) * PRIME2;
  hash = (hash ^ (hash >> 29)) * PRIME3;
  return hash ^ (hash >> 32);
}
