// The rows of an Arrow record batch, read once: the notes of each cell are its type and where it is. The columns are
// written from them (arrow.as.ts, arrow-json.as.ts).
import { BINARY, BOOLEAN, DATE, DECIMAL, DOUBLE, INT32, INT64, NULL, OBJECT_ID, STRING, UNDEFINED, findId, findNul, stringEnd, valueEnd } from "./bson.as";
import { hasDouble, isNoNumber, isWhole, nearestDouble, toScale } from "./decimal.as";
import { Selection, isFieldShown } from "./select.as";
import { NO_ID, UNSOUND } from "./transcode.as";
import { Cell, Table, cellNamed, cellOf, elementsOf, findCells, isNamed, isShown } from "./table.as";

// The kinds of columns, in the order of KINDS in columns.ts.
export const TEXT = 0, KEY = 1, UUID = 2, NUMERAL = 3, INTEGER = 4, FLOAT = 5, FLAG = 6, TIME = 7, BYTES = 8, JSON = 9;
/** The kind of numbers with the scale 0. Those of the scales 1 to 38 follow it. */
export const SCALED = 10;

/** Between the notes of two columns: at the same place of a page, they would share the few cache lines for it. */
const APART: usize = 448;

/** What arrowFind returns when a value fits no column and there is no rest. */
const UNFIT = -5;

/** The state of an encoder. A Part for each column, and one for `_rest`, follow it. */
@unmanaged export class Arrow {
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
  /** Counts the rows, to distinguish the cells of this row from those of others. */
  turn: i32;
  /** The cell of the field with which the row before began. */
  first: usize;
}

export const ARROW_SIZE: i32 = offsetof<Arrow>();

/**
 * The notes of a row: where its elements begin and end, and whether it has a rest. Then for each column the type of its
 * value, and its place, or the value itself where all values of the column have 8 bytes.
 */
export function notesSize(rows: usize, columns: usize): usize {
  return (9 * rows + APART) * (1 + columns);
}

export function arrowOpen(a: Arrow, table: usize, kinds: usize, keepsRest: i32, hasRest: i32): void {
  a.table = table;
  a.kinds = kinds;
  a.keepsRest = keepsRest;
  a.hasRest = hasRest;
  a.turn = 0;
  const t = changetype<Table>(table);
  a.first = changetype<usize>(cellOf(t, 0));
  for (let column = 0; column < t.columns; column++) {
    const cell = cellOf(t, column);
    cell.kind = load<u8>(kinds + <usize>column);
    cell.own = ownType(cell.kind);
    cell.turn = 0;
  }
}

// @ts-ignore: decorator
@inline export function begins(a: Arrow): usize { return a.notes; }
// @ts-ignore: decorator
@inline export function lasts(a: Arrow): usize { return a.notes + (a.most << 2); }
// @ts-ignore: decorator
@inline export function rests(a: Arrow): usize { return a.notes + (a.most << 3); }
/** The places or values of a column, 8 bytes each, and behind them their types, a byte each. */
// @ts-ignore: decorator
@inline export function places(a: Arrow, column: usize): usize { return a.notes + (9 * a.most + APART) * (1 + column); }
// @ts-ignore: decorator
@inline export function types(a: Arrow, column: usize): usize { return places(a, column) + (a.most << 3); }

/**
 * Reads rows from where the Table stands, at most `most` (a multiple of 8) and until they have `bytes` bytes, but one at
 * least. Returns how many, or a negative error. `notes` has room for them, see notesSize.
 */
export function arrowFind(a: Arrow, notes: usize, most: usize, bytes: usize): i32 {
  const t = changetype<Table>(a.table);
  const until = t.at + bytes;
  a.notes = notes;
  a.most = most;
  for (let i = 0; i < t.columns; i++) cellOf(t, i).notes = places(a, i);
  let row: usize = 0;
  while (row < most && t.at < t.end && (t.at < until || row == 0)) {
    const fault = t.selection == 0 ? noteAll(a, t, row) : noteShown(a, t, row);
    if (fault < 0) return fault;
    store<u32>(begins(a) + (row << 2), t.at);
    store<u32>(lasts(a) + (row << 2), t.next - 1);
    t.rows++;
    t.at = t.next;
    row++;
  }
  a.rows = row;
  return <i32>row;
}

/**
 * Notes a row of which everything is shown, in one walk over its fields. Most rows have the same fields in the same
 * order, so each is first compared with the column that came next before. Returns 0 or a negative error.
 */
function noteAll(a: Arrow, t: Table, row: usize): i32 {
  let o = elementsOf(t);
  if (o == 0) return UNSOUND;
  const last = t.next - 1;
  if (findId(o, last) == 0) return NO_ID;
  const turn = ++a.turn;
  let missing = t.columns;
  let hasOthers = false;
  let isUnfit = false;
  let expected = changetype<usize>(a) + offsetof<Arrow>("first"); // has the cell that probably comes now
  while (o < last) {
    const type = <i32>load<u8>(o);
    const key = o + 1;
    let cell = changetype<Cell>(load<usize>(expected));
    if (!isNamed(cell, key, last)) {
      cell = cellNamed(t, key, last);
      if (changetype<usize>(cell) == 0) {
        const nul = findNul(key, last);
        o = nul == 0 ? 0 : valueEnd(type, nul + 1, last);
        if (o == 0) return UNSOUND;
        hasOthers = true;
        continue;
      }
      store<usize>(expected, changetype<usize>(cell));
    }
    expected = changetype<usize>(cell) + offsetof<Cell>("following");
    const at = key + cell.length + 1;
    o = type == STRING ? stringEnd(at, last) : valueEnd(type, at, last);
    if (o == 0) return UNSOUND;
    if (cell.turn == turn) { // the second field of this name
      hasOthers = true;
      continue;
    }
    cell.turn = turn;
    missing--;
    if (type == cell.own) {
      store<u8>(cell.notes + (a.most << 3) + row, <u8>type);
      store<u64>(cell.notes + (row << 3), noteOf(type, at));
    } else if (type == NULL || type == UNDEFINED) noteNull(a, cell, row);
    else if (!note(a, cell, row, type, at, o)) isUnfit = true;
  }
  if (o != last) return UNSOUND;
  for (let column = 0; missing > 0; column++) {
    const cell = cellOf(t, column);
    if (cell.turn == turn) continue;
    noteNull(a, cell, row);
    missing--;
  }
  return noteRest(a, row, isUnfit || (hasOthers && a.keepsRest != 0));
}

/** As noteAll, for a row of which not everything is shown. */
function noteShown(a: Arrow, t: Table, row: usize): i32 {
  const fault = findCells(t);
  if (fault < 0) return fault;
  const first = findNul(t.at + 1, t.end) + 5;
  let hasRest = a.keepsRest != 0 && t.hasRest != 0 && hasShownRest(t, first, t.next - 1);
  for (let column = 0; column < t.columns; column++) {
    const cell = cellOf(t, column);
    const type = cell.type;
    const isNull = type == 0 || type == NULL || type == UNDEFINED || !isShown(t, cell, column);
    if (isNull) noteNull(a, cell, row);
    else if (!note(a, cell, row, type, cell.at, cell.end)) hasRest = true;
  }
  return noteRest(a, row, hasRest);
}

/** Notes whether a row has a rest. Returns 0, or an error where there is no column for it. */
function noteRest(a: Arrow, row: usize, hasRest: bool): i32 {
  store<u8>(rests(a) + row, <u8>hasRest);
  return hasRest && a.hasRest == 0 ? UNFIT : 0;
}

/** Notes the type of a value and its place, or the number itself. Returns false, and notes null, when it does not fit. */
function note(a: Arrow, cell: Cell, row: usize, type: i32, at: usize, end: usize): bool {
  const kind = cell.kind;
  if (!fits(kind, type, at, end)) {
    noteNull(a, cell, row);
    return false;
  }
  store<u8>(cell.notes + (a.most << 3) + row, <u8>type);
  store<u64>(cell.notes + (row << 3), kind < INTEGER || kind > TIME ? <u64>at : valueOf(kind, type, at));
  return true;
}

// @ts-ignore: decorator
@inline function noteNull(a: Arrow, cell: Cell, row: usize): void {
  store<u8>(cell.notes + (a.most << 3) + row, 0);
  store<u64>(cell.notes + (row << 3), 0);
}

/** The type that most values of a kind have, all of which fit. 0: there is none, or not all of them fit. */
function ownType(kind: i32): i32 {
  switch (kind) {
    case TEXT: return STRING;
    case KEY: return OBJECT_ID;
    case INTEGER: return INT32;
    case FLOAT: return DOUBLE;
    case TIME: return DATE;
  }
  return 0;
}

/** The note of a value of a kind's own type. */
// @ts-ignore: decorator
@inline function noteOf(type: i32, at: usize): u64 {
  if (type == STRING || type == OBJECT_ID) return <u64>at;
  return type == INT32 ? <u64><i64>load<i32>(at) : load<u64>(at);
}

/** The 8 bytes of a value in a column of numbers or times; 1 or 0 in a column of flags. */
function valueOf(kind: i32, type: i32, at: usize): u64 {
  switch (type) {
    case INT32: return kind == FLOAT ? reinterpret<u64>(<f64>load<i32>(at)) : <u64><i64>load<i32>(at);
    case INT64: return kind == FLOAT ? reinterpret<u64>(<f64>load<i64>(at)) : load<u64>(at);
    case DOUBLE: return kind == FLOAT ? load<u64>(at) : <u64><i64>load<f64>(at);
    case DECIMAL: return reinterpret<u64>(nearestDouble(at));
    case BOOLEAN: return <u64>(load<u8>(at) != 0);
  }
  return load<u64>(at); // a date
}

/** Whether a value can stand in a column of this kind: exactly, or in one of doubles as the nearest one. */
export function fits(kind: i32, type: i32, at: usize, end: usize): bool {
  switch (kind) {
    case TEXT: return type == STRING;
    case KEY: return type == OBJECT_ID;
    case UUID: return isUuid(type, at, end);
    case NUMERAL: return type == DECIMAL && !isNoNumber(load<u64>(at, 8));
    case INTEGER: return type == INT32 || type == INT64 || (type == DOUBLE && isWhole(load<f64>(at)));
    case FLOAT: return type == DOUBLE || type == INT32 || type == INT64 || (type == DECIMAL && hasDouble(at));
    case FLAG: return type == BOOLEAN;
    case TIME: return type == DATE;
    case BYTES: return type == BINARY && !isUuid(type, at, end);
    case JSON: return true;
  }
  return toScale(type, at, kind - SCALED);
}

// @ts-ignore: decorator
@inline function isUuid(type: i32, at: usize, end: usize): bool {
  return type == BINARY && end - at == 21 && load<u8>(at, 4) == 4;
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
export function isOtherShown(t: Table, type: i32, key: usize, size: usize): bool {
  return isFieldShown(changetype<Selection>(t.selection), 1, type, key, size);
}

export function isInCell(t: Table, at: usize): bool {
  for (let column = 0; column < t.columns; column++) {
    const cell = cellOf(t, column);
    if (cell.type != 0 && cell.at == at) return true;
  }
  return false;
}
