// CSV (RFC 4180): the columns of a table, and from each row the first field of that name. A cell is quoted when
// necessary. A value that is not a number, a text or the like is JSON text in quotes: the machine of transcode.as.ts
// writes it into a scratch, and its quotes are doubled from there. csv-cell.ts describes the form, and tests check that
// both agree. Bounds and steps are those of transcode.as.ts.
import {
  ARRAY, BINARY, BOOLEAN, DATE, DECIMAL, DOCUMENT, DOUBLE, INT32, INT64, NULL, OBJECT_ID, STRING, UNDEFINED, findId, findNul, valueEnd,
} from "./bson.as";
import { base64Reached, writeBase64, writeObjectId, writeUuid } from "./binary.as";
import { hasSpecial, quotedReached, writeQuoted, writeRaw } from "./csv-text.as";
import { writeDate } from "./dates.as";
import { writeDecimal128, writeDouble, writeI64 } from "./numbers.as";
import { MEMBERS, NOWHERE, Place, WHOLE, findPath, findPolicy } from "./csv-path.as";
import { Selection, openSelection, restoreView, setFields } from "./select.as";
import { BASE64, MARGIN, NONE, NO_ID, STATE_SIZE, SPILL, State, TEXT, UNSOUND, beginValue, isValueWritten, step, useSelection } from "./transcode.as";

/** A column (16 bytes may be read from its name on), and where the current row has its value. `type` 0: nowhere. */
@unmanaged class Cell {
  name: usize;
  length: usize;
  type: i32;
  at: usize;
  end: usize;
}

export const CELL_SIZE: i32 = offsetof<Cell>();
const SCRATCH_SIZE: usize = 1024;

/** The state of a pass between two calls. The scratch, the State for nested values, and the cells follow it. */
@unmanaged class Table {
  /** The next row, the end of all rows, and the end of the current row. */
  at: usize;
  end: usize;
  next: usize;
  columns: i32;
  /** The next cell of the current row. -1 between rows. */
  column: i32;
  /** The piece under way, where it continues and ends. SPILL: JSON text, of which [at, end) of the scratch waits. */
  piece: i32;
  pieceAt: usize;
  pieceEnd: usize;
  /** Whether the piece ends with a quote. */
  quoted: i32;
  /** Whether text that a spreadsheet would take for a formula is made harmless. */
  safe: i32;
  /** What is shown of the rows (a Selection), and one Place (csv-path.as.ts) for each column. 0: everything is shown. */
  selection: usize;
  places: usize;
  /** Whether the columns are paths, not names. */
  arePaths: i32;
  rows: i32;
}

const SCRATCH_AT: usize = offsetof<Table>();
const JSON_AT: usize = SCRATCH_AT + SCRATCH_SIZE;
const CELLS_AT: usize = (JSON_AT + <usize>STATE_SIZE + 7) & ~7;
/** The number of bytes before the cells. */
export const TABLE_SIZE: i32 = <i32>CELLS_AT;

// @ts-ignore: decorator
@inline function cellOf(t: Table, column: i32): Cell {
  return changetype<Cell>(changetype<usize>(t) + CELLS_AT + <usize>column * offsetof<Cell>());
}

// @ts-ignore: decorator
@inline function jsonOf(t: Table): State {
  return changetype<State>(changetype<usize>(t) + JSON_AT);
}

/** Initializes the Table of a new encoder. Its cells already have their names. */
export function tableOpen(t: Table, columns: i32, safe: i32): void {
  memory.fill(changetype<usize>(t), 0, CELLS_AT);
  t.columns = columns;
  t.column = -1;
  t.safe = safe;
}

/**
 * Initializes the Selection of a Table that `tableOpen` has initialized, and the Places of its columns. `policy`,
 * `hides`: see openSelection. `arePaths`: the Places already have the paths of their columns.
 */
export function tableSelect(t: Table, selection: usize, places: usize, policy: usize, hides: i32, arePaths: i32): void {
  const s = changetype<Selection>(selection);
  openSelection(s, 0, policy, hides);
  t.selection = selection;
  t.places = places;
  t.arePaths = arePaths;
  useSelection(jsonOf(t), selection);
  if (arePaths != 0) return;
  for (let i = 0; i < t.columns; i++) findPolicy(s, placeOf(t, i), cellOf(t, i).name, cellOf(t, i).length);
}

// @ts-ignore: decorator
@inline function placeOf(t: Table, column: i32): Place {
  return changetype<Place>(t.places + <usize>column * offsetof<Place>());
}

export function tableBegin(t: Table, at: usize, end: usize): void {
  t.at = at;
  t.end = end;
  t.column = -1;
  t.piece = NONE;
  t.rows = 0;
}

export function tableFinished(t: Table): bool {
  return t.column < 0 && t.at == t.end;
}

/** As `endHere`: makes the batch end with the row under way. */
export function tableEndHere(t: Table): usize {
  t.end = t.column < 0 ? t.at : t.next;
  return t.end;
}

export function tableRowsDone(t: Table): i32 {
  return t.rows;
}

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
        p = isJson ? writeQuoted(t.pieceAt, t.pieceEnd, p, stop) : writeRaw(t.pieceAt, t.pieceEnd, p, stop, t.end, t.quoted != 0);
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
      store<u8>(p, 44);
      p += <usize>(t.column != 0);
      p = writeCell(t, cellOf(t, t.column), p, stop);
      if (p == 0) return UNSOUND;
      t.column++;
    }
  }
  return <i32>(p - out);
}

/** Finds the columns in the row at `t.at`, which is an element of an array, as in `run`. */
function findCells(t: Table): i32 {
  let o = t.at;
  if (load<u8>(o) != DOCUMENT) return UNSOUND;
  o = findNul(o + 1, t.end) + 1;
  if (o == 1) return UNSOUND;
  const next = valueEnd(DOCUMENT, o, t.end);
  if (next == 0) return UNSOUND;
  t.next = next;
  const last = next - 1;
  o += 4;
  if (findId(o, last) == 0) return NO_ID;
  const columns = t.columns;
  if (t.arePaths != 0) return findValues(t, o, last);
  for (let i = 0; i < columns; i++) cellOf(t, i).type = 0;
  let expected = 0; // most rows have their fields in the order of the columns
  while (o < last) {
    const type = <i32>load<u8>(o);
    const key = o + 1;
    // A short key is compared with the names 16 bytes at a time.
    let length: usize = 16;
    let bytes = i8x16.splat(0);
    if (key + 16 <= t.end) {
      bytes = v128.load(key);
      length = ctz(i8x16.bitmask(i8x16.eq(bytes, i8x16.splat(0))) | 0x10000);
    }
    const isShort = length < 16;
    const nul = isShort ? key + length : findNul(key, last);
    if (nul == 0 || nul >= last) return UNSOUND;
    length = nul - key;
    const mask = (1 << <i32>min<usize>(length, 16)) - 1;
    const end = valueEnd(type, nul + 1, last);
    if (end == 0) return UNSOUND;
    let column = expected;
    for (let left = columns; left > 0; left--) {
      const cell = cellOf(t, column);
      column++;
      if (column == columns) column = 0;
      if (cell.length != length) continue;
      if (isShort) {
        if ((i8x16.bitmask(i8x16.eq(bytes, v128.load(cell.name))) & mask) != mask) continue;
      } else if (memory.compare(cell.name, key, length) != 0) continue;
      if (cell.type == 0) {
        cell.type = type;
        cell.at = nul + 1;
        cell.end = end;
      }
      expected = column;
      break;
    }
    o = end;
  }
  return o == last ? 0 : UNSOUND;
}

/** As findCells, for columns that are paths, in the row whose elements are at [o, last). */
function findValues(t: Table, o: usize, last: usize): i32 {
  const s = changetype<Selection>(t.selection);
  for (let i = 0; i < t.columns; i++) {
    const place = placeOf(t, i);
    const cell = cellOf(t, i);
    setFields(s, place.path);
    const found = findPath(s, place, o, last, 1);
    if (found < 0) return found;
    cell.type = found == NOWHERE ? 0 : found;
    cell.at = place.at;
    cell.end = place.end;
  }
  return 0;
}

/** Writes a cell, or writes its beginning and leaves the rest as a piece. 0 when its value is not sound. */
function writeCell(t: Table, cell: Cell, p: usize, stop: usize): usize {
  const o = cell.at;
  if (t.selection != 0 && !isShown(t, cell)) return p;
  switch (cell.type) {
    case 0: case NULL: case UNDEFINED: return p;
    case STRING: return beginText(t, o + 4, cell.end - 1, p, stop);
    case INT32: return writeI64(<i64>load<i32>(o), p);
    case INT64: return writeI64(load<i64>(o), p);
    case DOUBLE: {
      const value = load<f64>(o);
      return abs(value) < Infinity ? writeDouble(value, p) : p;
    }
    case DECIMAL: return ((load<u64>(o, 8) >> 59) & 15) == 15 ? p : writeDecimal128(o, p);
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
  beginJson(t, cell);
  t.piece = SPILL;
  t.quoted = 1;
  t.pieceAt = 0;
  t.pieceEnd = 0;
  store<u8>(p, 34);
  return p + 1;
}

/** Whether the policy shows the value of a cell whose column is a name. That of a path was looked at already. */
function isShown(t: Table, cell: Cell): bool {
  const place = placeOf(t, t.column);
  if (t.arePaths != 0) return true;
  return place.shows == WHOLE || (place.shows == MEMBERS && (cell.type == DOCUMENT || cell.type == ARRAY));
}

function beginJson(t: Table, cell: Cell): void {
  let depth: usize = 1;
  if (t.selection != 0) {
    const place = placeOf(t, t.column);
    const s = changetype<Selection>(t.selection);
    depth = place.depth;
    setFields(s, place.path);
    restoreView(s, depth + 1, changetype<usize>(place) + offsetof<Place>("view"));
  }
  beginValue(jsonOf(t), cell.type, cell.at, cell.end, t.next - 1, depth);
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
  const begun = p;
  p = writeRaw(o, end, isWideSign(o) ? apostrophe(t, p) : disarm(t, load<u8>(o), p), stop, t.end, false);
  o = quotedReached;
  if (o == end) return p;
  t.piece = TEXT;
  t.pieceAt = o;
  t.pieceEnd = end;
  t.quoted = <i32>hasSpecial(o, end, t.end);
  return t.quoted != 0 ? quoteBefore(begun, p) : p;
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

/**
 * Writes an apostrophe before text that begins with = + - @ TAB CR or LF. A spreadsheet then takes it for text (OWASP,
 * CSV Injection). isWideSign handles signs of full width.
 */
function disarm(t: Table, first: u8, p: usize): usize {
  if (first != 61 && first != 43 && first != 45 && first != 64 && first != 9 && first != 13 && first != 10) return p;
  return apostrophe(t, p);
}

function apostrophe(t: Table, p: usize): usize {
  if (t.safe == 0) return p;
  store<u8>(p, 39);
  return p + 1;
}

/**
 * Whether = + - or @ of full width (U+FF1D, FF0B, FF0D, FF20; EF BC xx in UTF-8) is at `o`, the beginning of a text
 * that is not empty.
 */
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
