// Rows as the body of an Arrow record batch (https://arrow.apache.org/docs/format/Columnar.html): the buffers of one
// column after the other, each from a multiple of 8 bytes on.
//
// First every row of the record batch is read once, which notes for each cell its type and where it is (arrowFind). Then
// each column is written from these notes (arrowWrite), so a body grows at its end only. What does not fit its column is
// null there. The last column, `_rest`, has it as JSON text, together with the fields that no column has.
import { BINARY, BOOLEAN, DATE, DECIMAL, DOUBLE, INT32, INT64, NULL, OBJECT_ID, STRING, UNDEFINED, findNul, valueEnd } from "./bson.as";
import { writeObjectId, writeUuid } from "./binary.as";
import { writeDecimal128 } from "./numbers.as";
import { Selection, isFieldShown } from "./select.as";
import { Table, beginJson, cellOf, findCells, isShown, jsonOf } from "./table.as";
import { beginValue, isValueWritten, step } from "./transcode.as";
import { utf8Prefix, writeSequence, writeText } from "./text.as";

// The kinds of columns, in the order of KINDS in columns.ts.
const TEXT = 0, KEY = 1, UUID = 2, NUMERAL = 3, INTEGER = 4, FLOAT = 5, FLAG = 6, TIME = 7, BYTES = 8, JSON = 9;

/** What arrowWrite returns when the body needs more room, and arrowFind when a value fits no column and there is no rest. */
const FULL = -4, UNFIT = -5;
/** At least this much room is left for a step of JSON text. */
const STEP_ROOM: usize = 512;
const LARGEST_EXACT: i64 = 9007199254740992;

/** The state of an encoder. A Part for each column, and one for `_rest`, follow it. */
@unmanaged class Arrow {
  table: usize;
  /** The kind of each column: bytes. */
  kinds: usize;
  /** Whether fields without a column go to `_rest`. */
  keepsRest: i32;
  /** Whether there is a column `_rest`. Otherwise a value that fits no column is a fault. */
  hasRest: i32;
  /** The notes of the record batch, the most rows they have room for, and how many they have. */
  notes: usize;
  most: usize;
  rows: usize;
}

/** A column of a record batch: the number of its nulls, and its buffers by their offsets in the body. */
@unmanaged class Part {
  nulls: u32;
  /** The length is 0 when nothing is null. */
  validityAt: u32;
  validityLength: u32;
  /** The length is 0 when all values have the same size. */
  offsetsAt: u32;
  offsetsLength: u32;
  dataAt: u32;
  dataLength: u32;
}

export const ARROW_SIZE: i32 = offsetof<Arrow>();
export const PART_SIZE: i32 = offsetof<Part>();

/**
 * The notes of a row: where its elements begin and end, and whether it has a rest. Then for each column the type of its
 * value, and its place, or the value itself where all values of the column have 8 bytes.
 */
export function notesSize(rows: usize, columns: usize): usize {
  return 9 * rows * (1 + columns);
}

export function arrowOpen(a: Arrow, table: usize, kinds: usize, keepsRest: i32, hasRest: i32): void {
  a.table = table;
  a.kinds = kinds;
  a.keepsRest = keepsRest;
  a.hasRest = hasRest;
}

// @ts-ignore: decorator
@inline function begins(a: Arrow): usize { return a.notes; }
// @ts-ignore: decorator
@inline function lasts(a: Arrow): usize { return a.notes + (a.most << 2); }
// @ts-ignore: decorator
@inline function rests(a: Arrow): usize { return a.notes + (a.most << 3); }
/** The places or values of a column, 8 bytes each, and behind them their types, a byte each. */
// @ts-ignore: decorator
@inline function places(a: Arrow, column: usize): usize { return a.notes + 9 * a.most * (1 + column); }
// @ts-ignore: decorator
@inline function types(a: Arrow, column: usize): usize { return places(a, column) + (a.most << 3); }

/**
 * Reads rows from where the Table stands, at most `most` (a multiple of 8) and until they have `bytes` bytes, but one at
 * least. Returns how many, or a negative error. `notes` has room for them, see notesSize.
 */
export function arrowFind(a: Arrow, notes: usize, most: usize, bytes: usize): i32 {
  const t = changetype<Table>(a.table);
  const columns = <usize>t.columns;
  const until = t.at + bytes;
  const hasSelection = t.selection != 0;
  a.notes = notes;
  a.most = most;
  let row: usize = 0;
  while (row < most && t.at < t.end && (t.at < until || row == 0)) {
    const fault = findCells(t);
    if (fault < 0) return fault;
    const first = findNul(t.at + 1, t.end) + 5;
    const last = t.next - 1;
    let hasRest = a.keepsRest != 0 && t.hasRest != 0;
    if (hasRest && hasSelection) hasRest = hasShownRest(t, first, last);
    if (hasRest && a.hasRest == 0) return UNFIT;
    for (let column: usize = 0; column < columns; column++) {
      const cell = cellOf(t, <i32>column);
      const kind = <i32>load<u8>(a.kinds + column);
      let type = cell.type;
      if (type == NULL || type == UNDEFINED || (hasSelection && type != 0 && !isShown(t, cell, <i32>column))) type = 0;
      if (type != 0 && !fits(kind, type, cell.at, cell.end)) {
        if (a.hasRest == 0) return UNFIT;
        hasRest = true;
        type = 0;
      }
      const at = places(a, column);
      store<u8>(at + (a.most << 3) + row, <u8>type);
      store<u64>(at + (row << 3), kind < INTEGER || kind > TIME ? <u64>cell.at : valueOf(kind, type, cell.at));
    }
    store<u32>(begins(a) + (row << 2), t.at);
    store<u32>(lasts(a) + (row << 2), last);
    store<u8>(rests(a) + row, <u8>hasRest);
    t.rows++;
    t.at = t.next;
    row++;
  }
  a.rows = row;
  return <i32>row;
}

/** The 8 bytes of a value in a column of numbers or times; 1 or 0 in a column of flags. */
function valueOf(kind: i32, type: i32, at: usize): u64 {
  switch (type) {
    case 0: return 0;
    case INT32: return kind == FLOAT ? reinterpret<u64>(<f64>load<i32>(at)) : <u64><i64>load<i32>(at);
    case INT64: return kind == FLOAT ? reinterpret<u64>(<f64>load<i64>(at)) : load<u64>(at);
    case DOUBLE: return kind == FLOAT ? load<u64>(at) : <u64><i64>load<f64>(at);
    case BOOLEAN: return <u64>(load<u8>(at) != 0);
  }
  return load<u64>(at); // a date
}

/** Whether a value can stand in a column of this kind without loss. */
function fits(kind: i32, type: i32, at: usize, end: usize): bool {
  switch (kind) {
    case TEXT: return type == STRING;
    case KEY: return type == OBJECT_ID;
    case UUID: return isUuid(type, at, end);
    case NUMERAL: return type == DECIMAL && ((load<u64>(at, 8) >> 59) & 15) != 15; // NaN and infinities
    case INTEGER: return type == INT32 || type == INT64 || (type == DOUBLE && isWhole(load<f64>(at)));
    case FLOAT: return type == DOUBLE || type == INT32 || (type == INT64 && abs(load<i64>(at)) <= LARGEST_EXACT);
    case FLAG: return type == BOOLEAN;
    case TIME: return type == DATE;
    case BYTES: return type == BINARY && !isUuid(type, at, end);
  }
  return true;
}

// @ts-ignore: decorator
@inline function isUuid(type: i32, at: usize, end: usize): bool {
  return type == BINARY && end - at == 21 && load<u8>(at, 4) == 4;
}

/** Whether a double is an integer that has the same JSON text. That of -0 is 0. */
// @ts-ignore: decorator
@inline function isWhole(value: f64): bool {
  return abs(value) <= <f64>LARGEST_EXACT && floor(value) == value;
}

/**
 * Writes the body of the record batch to [out, limit), which begins at a multiple of 8. Returns its length, FULL or a
 * negative error. It can be called again with more room.
 */
export function arrowWrite(a: Arrow, out: usize, limit: usize): i32 {
  const t = changetype<Table>(a.table);
  const columns = <usize>t.columns;
  let p = out;
  for (let column: usize = 0; column <= columns; column++) {
    if (column == columns && a.hasRest == 0) break;
    const part = partOf(a, column);
    if (limit - p < (a.rows << 3) + (a.rows << 2) + STEP_ROOM) return FULL; // all but the bytes of texts
    const flags = column == columns ? rests(a) : types(a, column);
    p = writeValidity(part, flags, a.rows, out, p);
    part.offsetsLength = 0;
    const kind = column == columns ? JSON : <i32>load<u8>(a.kinds + column);
    if (kind >= INTEGER && kind <= TIME) {
      part.dataAt = <u32>(p - out);
      p = writeNumbers(a, column, kind, p);
    } else {
      part.offsetsAt = <u32>(p - out);
      part.offsetsLength = <u32>(a.rows + 1) << 2;
      const offsets = p;
      p = aligned(p + <usize>part.offsetsLength);
      part.dataAt = <u32>(p - out);
      p = writeTexts(a, column, kind, offsets, p, limit);
      if (p == 0) return stopped;
    }
    part.dataLength = <u32>(p - out) - part.dataAt;
    if (limit - p < 8) return FULL;
    p = aligned(p);
  }
  return <i32>(p - out);
}

/** Why writeTexts returned 0. */
let stopped: i32 = 0;

// @ts-ignore: decorator
@inline function partOf(a: Arrow, column: usize): Part {
  return changetype<Part>(changetype<usize>(a) + offsetof<Arrow>() + column * offsetof<Part>());
}

/** The next multiple of 8. The bytes up to there become 0, so that the same rows always have the same bytes. */
function aligned(p: usize): usize {
  const end = (p + 7) & ~7;
  while (p < end) store<u8>(p++, 0);
  return end;
}

/** Writes a bit for each row, unless all are set. `flags`: a byte for each row, 0 where the value is null. */
function writeValidity(part: Part, flags: usize, rows: usize, out: usize, p: usize): usize {
  let set: usize = 0;
  let row: usize = 0;
  for (; row + 16 <= rows; row += 16) set += <usize>popcnt(bitsOf(flags + row));
  for (; row < rows; row++) set += <usize>(load<u8>(flags + row) != 0);
  part.nulls = <u32>(rows - set);
  part.validityAt = <u32>(p - out);
  part.validityLength = set == rows ? 0 : <u32>(rows + 7) >> 3;
  if (set == rows) return p;
  row = 0;
  for (; row + 16 <= rows; row += 16, p += 2) store<u16>(p, <u16>bitsOf(flags + row));
  for (; row < rows; row += 8) {
    let bits: u8 = 0;
    for (let i: usize = 0, left = min<usize>(8, rows - row); i < left; i++) bits |= <u8>(load<u8>(flags + row + i) != 0) << <u8>i;
    store<u8>(p++, bits);
  }
  return aligned(p);
}

/** A bit for each of 16 bytes that is not 0. */
// @ts-ignore: decorator
@inline function bitsOf(at: usize): i32 {
  return i8x16.bitmask(i8x16.ne(v128.load(at), i8x16.splat(0)));
}

/** Writes the values of a column of numbers, times or flags. Nulls are 0. */
function writeNumbers(a: Arrow, column: usize, kind: i32, p: usize): usize {
  const rows = a.rows;
  const values = places(a, column);
  if (kind != FLAG) {
    memory.copy(p, values, rows << 3);
    return p + (rows << 3);
  }
  for (let row: usize = 0; row < rows; row += 8) {
    let bits: u8 = 0;
    for (let i: usize = 0, left = min<usize>(8, rows - row); i < left; i++) bits |= load<u8>(values + ((row + i) << 3)) << <u8>i;
    store<u8>(p++, bits);
  }
  return p;
}

/** Writes the offsets and the bytes of a column of texts. Returns where they end; 0: see `stopped`. */
function writeTexts(a: Arrow, column: usize, kind: i32, offsets: usize, data: usize, limit: usize): usize {
  const t = changetype<Table>(a.table);
  const isRest = column == <usize>t.columns;
  const flags = isRest ? rests(a) : types(a, column);
  let p = data;
  for (let row: usize = 0; row < a.rows; row++) {
    store<u32>(offsets + (row << 2), <u32>(p - data));
    const type = <i32>load<u8>(flags + row);
    if (type == 0) continue;
    if (isRest) {
      p = writeRest(a, row, p, limit);
      if (p == 0) return 0;
      continue;
    }
    const o = <usize>load<u32>(places(a, column) + (row << 3));
    if (kind == JSON) {
      beginCell(a, <i32>column, row, type, o);
      p = writeJson(t, p, limit);
      if (p == 0) return 0;
      continue;
    }
    const size = kind == TEXT || kind == BYTES ? <usize>load<u32>(o) : 0;
    if (limit - p < 3 * size + STEP_ROOM) return stop(FULL); // a broken byte becomes three
    switch (kind) {
      case TEXT: p = copyText(o + 4, o + 3 + size, p, t.end); break;
      case KEY: p = withoutQuotes(p, writeObjectId(o, p)); break;
      case UUID: p = withoutQuotes(p, writeUuid(o + 5, p)); break;
      case NUMERAL: p = writeDecimal128(o, p); break;
      default: { // the old subtype 2 repeats the length inside the value
        const skipped: usize = load<u8>(o, 4) == 2 ? 4 : 0;
        memory.copy(p, o + 5 + skipped, size - skipped);
        p += size - skipped;
      }
    }
  }
  store<u32>(offsets + (a.rows << 2), <u32>(p - data));
  return p;
}

function stop(why: i32): usize {
  stopped = why;
  return 0;
}

/** Copies [o, e) as UTF-8, with U+FFFD in place of what is none. A NUL is at `e`. `end` is where the batch ends. */
function copyText(o: usize, e: usize, p: usize, end: usize): usize {
  while (o < e) {
    if (o + 16 <= end) {
      const v = v128.load(o);
      v128.store(p, v);
      const left = min<usize>(16, e - o);
      const above = i8x16.bitmask(v);
      const ascii = <usize>ctz(above | 0x10000);
      const n = ascii >= left ? left : min<usize>(utf8Prefix(v, left, ascii), left);
      if (n != 0) {
        o += n;
        p += n;
        continue;
      }
    }
    if (load<u8>(o) < 0x80) {
      store<u8>(p++, load<u8>(o++));
      continue;
    }
    const n = writeSequence(o, p);
    o += abs(n);
    p += n > 0 ? n : 3;
  }
  return p;
}

/** Moves the quoted ASCII text at [p, end) over its first quote. Returns where it ends without quotes. */
function withoutQuotes(p: usize, end: usize): usize {
  const length = end - p - 2;
  memory.copy(p, p + 1, length);
  return p + length;
}

/** Starts the JSON text of a cell. What a path leads to has a view of its own, so it is looked for again. */
function beginCell(a: Arrow, column: i32, row: usize, type: i32, o: usize): void {
  const t = changetype<Table>(a.table);
  const cell = cellOf(t, column);
  if (t.arePaths != 0) findRow(a, row);
  else {
    const last = <usize>load<u32>(lasts(a) + (row << 2));
    cell.type = type;
    cell.at = o;
    cell.end = valueEnd(type, o, last);
    t.next = last + 1;
  }
  beginJson(t, cell, column);
}

/** Finds the cells of a row of this record batch again. It is known to be sound. */
function findRow(a: Arrow, row: usize): void {
  const t = changetype<Table>(a.table);
  const at = t.at;
  t.at = <usize>load<u32>(begins(a) + (row << 2));
  findCells(t);
  t.at = at;
}

/** Writes the JSON text that was started. Returns where it ends; 0: see `stopped`. */
function writeJson(t: Table, p: usize, limit: usize): usize {
  const json = jsonOf(t);
  do {
    if (limit - p < STEP_ROOM) return stop(FULL);
    const written = step(json, p, limit);
    if (written < 0) return stop(written);
    p += <usize>written;
  } while (!isValueWritten(json));
  return p;
}

/** Writes what no column has of a row: an object of the values that do not fit, and the fields without a column. */
function writeRest(a: Arrow, row: usize, p: usize, limit: usize): usize {
  const t = changetype<Table>(a.table);
  findRow(a, row);
  if (limit - p < STEP_ROOM) return stop(FULL);
  const begun = p + 1;
  store<u8>(p, 123);
  p = begun;
  for (let column = 0; column < t.columns; column++) {
    const cell = cellOf(t, column);
    const isNull = cell.type == 0 || cell.type == NULL || cell.type == UNDEFINED;
    if (isNull || fits(<i32>load<u8>(a.kinds + column), cell.type, cell.at, cell.end)) continue;
    if (t.selection != 0 && !isShown(t, cell, column)) continue;
    p = writeName(cell.name, cell.name + cell.length, p, begun, limit);
    if (p == 0) return 0;
    beginJson(t, cell, column);
    p = writeJson(t, p, limit);
    if (p == 0) return 0;
  }
  if (a.keepsRest != 0) p = writeOthers(t, <usize>load<u32>(begins(a) + (row << 2)), p, begun, limit);
  if (p == 0) return 0;
  store<u8>(p, 125);
  return p + 1;
}

/** Writes the fields of the current row that no cell has. `begun`: where the object's first member would be. */
function writeOthers(t: Table, row: usize, p: usize, begun: usize, limit: usize): usize {
  const last = t.next - 1;
  let o = findNul(row + 1, last) + 5;
  while (o < last) {
    const type = <i32>load<u8>(o);
    const key = o + 1;
    const nul = findNul(key, last);
    const at = nul + 1;
    const end = valueEnd(type, at, last);
    o = end;
    if (isInCell(t, at)) continue;
    if (t.selection != 0 && !isOtherShown(t, type, key, nul - key)) continue;
    p = writeName(key, nul, p, begun, limit);
    if (p == 0) return 0;
    beginValue(jsonOf(t), type, at, end, last, 1);
    p = writeJson(t, p, limit);
    if (p == 0) return 0;
  }
  return p;
}

/** Whether any field that no cell has is shown. */
function hasShownRest(t: Table, first: usize, last: usize): bool {
  let o = first;
  while (o < last) {
    const type = <i32>load<u8>(o);
    const nul = findNul(o + 1, last);
    const at = nul + 1;
    if (!isInCell(t, at) && isOtherShown(t, type, o + 1, nul - o - 1)) return true;
    o = valueEnd(type, at, last);
  }
  return false;
}

/** Whether the policy shows a field without a column. Its view is then that of the value. */
function isOtherShown(t: Table, type: i32, key: usize, size: usize): bool {
  return isFieldShown(changetype<Selection>(t.selection), 1, type, key, size);
}

function isInCell(t: Table, at: usize): bool {
  for (let column = 0; column < t.columns; column++) {
    const cell = cellOf(t, column);
    if (cell.type != 0 && cell.at == at) return true;
  }
  return false;
}

/** Writes the name of a member, a comma before it unless it is the first, and a colon. A NUL is at `e`. */
function writeName(o: usize, e: usize, p: usize, begun: usize, limit: usize): usize {
  if (limit - p < 6 * (e - o) + STEP_ROOM) return stop(FULL);
  store<u8>(p, 44);
  p += <usize>(p != begun);
  store<u8>(p++, 34);
  p = writeText(o, e, p, limit, e);
  store<u16>(p, 0x3a22);
  return p + 2;
}
