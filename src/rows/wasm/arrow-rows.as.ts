// The rows of an Arrow record batch, read once: the notes of each cell are its type and where it is. The columns are
// written from them (arrow.as.ts, arrow-json.as.ts).
import { BINARY, BOOLEAN, DATE, DECIMAL, DOUBLE, INT32, INT64, NULL, OBJECT_ID, STRING, UNDEFINED, findNul, valueEnd } from "./bson.as";
import { Selection, isFieldShown } from "./select.as";
import { Table, cellOf, findCells, isShown } from "./table.as";

// The kinds of columns, in the order of KINDS in columns.ts.
export const TEXT = 0, KEY = 1, UUID = 2, NUMERAL = 3, INTEGER = 4, FLOAT = 5, FLAG = 6, TIME = 7, BYTES = 8, JSON = 9;

/** What arrowFind returns when a value fits no column and there is no rest. */
const UNFIT = -5;
const LARGEST_EXACT: i64 = 9007199254740992;

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
}

export const ARROW_SIZE: i32 = offsetof<Arrow>();

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
@inline export function begins(a: Arrow): usize { return a.notes; }
// @ts-ignore: decorator
@inline export function lasts(a: Arrow): usize { return a.notes + (a.most << 2); }
// @ts-ignore: decorator
@inline export function rests(a: Arrow): usize { return a.notes + (a.most << 3); }
/** The places or values of a column, 8 bytes each, and behind them their types, a byte each. */
// @ts-ignore: decorator
@inline export function places(a: Arrow, column: usize): usize { return a.notes + 9 * a.most * (1 + column); }
// @ts-ignore: decorator
@inline export function types(a: Arrow, column: usize): usize { return places(a, column) + (a.most << 3); }

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
export function fits(kind: i32, type: i32, at: usize, end: usize): bool {
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
