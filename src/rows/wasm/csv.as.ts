// CSV (RFC 4180), as csv-cell.ts describes it; tests check that both agree. A value that is not a number, a text or the
// like is JSON text in quotes: the machine of transcode.as.ts writes it into a scratch, and its quotes are doubled from
// there. Bounds and steps are those of transcode.as.ts.
import {
  BINARY, BOOLEAN, DATE, DECIMAL, DOUBLE, INT32, INT64, NULL, OBJECT_ID, STRING, UNDEFINED,
} from "./bson.as";
import { base64Reached, writeBase64, writeObjectId, writeUuid } from "./binary.as";
import { UNQUOTED, hasSpecial, quotedReached, writeQuoted, writeRaw } from "./csv-text.as";
import { writeDate } from "./dates.as";
import { writeDecimal128, writeDouble, writeI64 } from "./numbers.as";
import { Cell, SCRATCH_AT, SCRATCH_SIZE, Table, beginJson, cellOf, findCells, isShown, jsonOf } from "./table.as";
import { BASE64, MARGIN, NONE, SPILL, TEXT, UNSOUND, isValueWritten, step } from "./transcode.as";

/** As `run`: writes CSV text to [out, limit) and returns the number of bytes, or a negative error. */
export function tableRun(t: Table, out: usize, limit: usize): i32 {
  const stop = limit - MARGIN;
  let p = out;
  while (p <= stop) {
    if (t.piece != NONE) {
      const isJson = t.piece == SPILL;
      if (isJson && t.pieceAt == t.pieceEnd) {
        const fault = refill(t);
        if (fault < 0) return fault;
      }
      if (t.piece == BASE64) {
        p = writeBase64(t.pieceAt, t.pieceEnd, p, stop);
        t.pieceAt = base64Reached;
      } else {
        p = isJson ? writeQuoted(t.pieceAt, t.pieceEnd, p, stop) : writeRaw(t.pieceAt, t.pieceEnd, p, stop, t.end, t.quoted);
        t.pieceAt = quotedReached;
      }
      if (t.pieceAt != t.pieceEnd) break;
      if (isJson && !isValueWritten(jsonOf(t))) continue;
      store<u8>(p, 34);
      p += t.quoted;
      t.piece = NONE;
    } else if (t.column < 0) {
      if (t.at == t.end) break;
      const fault = findCells(t);
      if (fault < 0) return fault;
      t.column = 0;
    } else if (t.column == t.columns) {
      store<u16>(p, 0x0a0d);
      p += 2;
      t.rows++;
      t.column = -1;
      t.at = t.next;
    } else {
      store<u8>(p, <u8>t.separator);
      p += <usize>(t.column != 0);
      p = writeCell(t, cellOf(t, t.column), p, stop);
      if (p == 0) return UNSOUND;
      t.column++;
    }
  }
  return <i32>(p - out);
}

/** Writes a cell, or writes its beginning and leaves the rest as a piece. 0 when its value is not sound. */
function writeCell(t: Table, cell: Cell, p: usize, stop: usize): usize {
  const o = cell.at;
  if (t.selection != 0 && !isShown(t, cell, t.column)) return p;
  switch (cell.type) {
    case 0: case NULL: case UNDEFINED: return p;
    case STRING: return beginText(t, o + 4, cell.end - 1, p, stop);
    case INT32: return writeI64(<i64>load<i32>(o), p);
    case INT64: return writeI64(load<i64>(o), p);
    case DOUBLE: {
      const value = load<f64>(o);
      return abs(value) < Infinity ? withComma(t, p, writeDouble(value, p)) : p;
    }
    case DECIMAL: return ((load<u64>(o, 8) >> 59) & 15) == 15 ? p : withComma(t, p, writeDecimal128(o, p));
    case OBJECT_ID: return unquoted(t, p, writeObjectId(o, p));
    case BOOLEAN: {
      const value = load<u8>(o);
      if (value > 1) return 0;
      store<u64>(p, value ? 0x65757274 : 0x65736c6166); // true, false
      return p + 5 - value;
    }
    case DATE: {
      const end = writeDate(load<i64>(o), p);
      if (load<u8>(p) == 34) return unquoted(t, p, end);
      break;
    }
    case BINARY: {
      const subtype = load<u8>(o, 4);
      if (subtype == 4 && cell.end - o == 21) return unquoted(t, p, writeUuid(o + 5, p));
      return beginBase64(t, subtype == 2 ? o + 9 : o + 5, cell.end, p);
    }
  }
  beginJson(t, cell, t.column);
  t.piece = SPILL;
  t.quoted = 1;
  t.pieceAt = 0;
  t.pieceEnd = 0;
  store<u8>(p, 34);
  return p + 1;
}

/**
 * Writes text, or as much as there is room for, as if it needed no quotes. Most text needs none, so a single pass
 * copies and checks it. If the text does need quotes, what was written moves to make room for the quote before it.
 */
function beginText(t: Table, o: usize, end: usize, p: usize, stop: usize): usize {
  if (o == end) {
    store<u16>(p, 0x2222); // quotes distinguish an empty text from no value
    return p + 2;
  }
  if (t.separator != 44 && hasByte(o, end, <u8>t.separator)) {
    store<u8>(p, 34);
    p = isWideSign(o) ? apostrophe(t, p + 1) : disarm(t, load<u8>(o), p + 1);
    t.piece = TEXT;
    t.pieceAt = o;
    t.pieceEnd = end;
    t.quoted = 1;
    return p;
  }
  const begun = p;
  p = writeRaw(o, end, isWideSign(o) ? apostrophe(t, p) : disarm(t, load<u8>(o), p), stop, t.end, UNQUOTED);
  o = quotedReached;
  if (o == end) return p;
  t.piece = TEXT;
  t.pieceAt = o;
  t.pieceEnd = end;
  t.quoted = <i32>hasSpecial(o, end, t.end);
  return t.quoted != 0 ? quoteBefore(begun, p) : p;
}

function hasByte(o: usize, end: usize, byte: u8): bool {
  for (; o < end; o++) if (load<u8>(o) == byte) return true;
  return false;
}

/** Makes the point of the number at [p, end) a comma, where numbers have one. */
// @ts-ignore: decorator
@inline function withComma(t: Table, p: usize, end: usize): usize {
  if (t.hasComma != 0) for (; p < end; p++) if (load<u8>(p) == 46) store<u8>(p, 44);
  return end;
}

/** Moves [begun, p) by one byte and writes a quote before it. */
function quoteBefore(begun: usize, p: usize): usize {
  let moved = v128.load(begun);
  store<u8>(begun, 34);
  for (let at = begun; at < p; at += 16) {
    const next = v128.load(at + 16);
    v128.store(at + 1, moved);
    moved = next;
  }
  return p + 1;
}

function beginBase64(t: Table, o: usize, end: usize, p: usize): usize {
  t.piece = BASE64;
  t.pieceAt = o;
  t.pieceEnd = end;
  t.quoted = <i32>(o == end);
  store<u8>(p, 34);
  p += t.quoted;
  return o < end && load<u8>(o) >> 2 == 62 ? disarm(t, 43, p) : p;
}

/** Writes an apostrophe before = + - @ TAB CR or LF: spreadsheets take it for text then (OWASP, CSV Injection). */
function disarm(t: Table, first: u8, p: usize): usize {
  if (first != 61 && first != 43 && first != 45 && first != 64 && first != 9 && first != 13 && first != 10) return p;
  return apostrophe(t, p);
}

function apostrophe(t: Table, p: usize): usize {
  if (t.safe == 0) return p;
  store<u8>(p, 39);
  return p + 1;
}

/** Whether a text, which is not empty, begins at `o` with = + - or @ of full width (U+FF1D, FF0B, FF0D, FF20). */
// @ts-ignore: decorator
@inline function isWideSign(o: usize): bool {
  if (load<u8>(o) != 0xef || load<u8>(o, 1) != 0xbc) return false;
  const last = load<u8>(o, 2); // a NUL and one more byte of the row follow the text
  return last == 0x9d || last == 0x8b || last == 0x8d || last == 0xa0;
}

/** Removes the quotes from the text at [p, end). */
function unquoted(t: Table, p: usize, end: usize): usize {
  const begun = disarm(t, load<u8>(p, 1), p); // an apostrophe takes the quote's place
  const length = end - p - 2;
  for (let i: usize = 0; i < length; i += 16) v128.store(begun + i, v128.load(p + 1 + i)); // to the left, or not at all
  return begun + length;
}

/** Writes the next part of the nested value's JSON into the scratch. */
function refill(t: Table): i32 {
  const scratch = changetype<usize>(t) + SCRATCH_AT;
  const written = step(jsonOf(t), scratch, scratch + SCRATCH_SIZE);
  if (written < 0) return written;
  t.pieceAt = scratch;
  t.pieceEnd = scratch + <usize>written;
  return 0;
}
