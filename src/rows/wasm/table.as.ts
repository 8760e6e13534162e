// The columns of a table, and where each row has its values: for CSV (csv.as.ts) and for Arrow (arrow.as.ts).
import { DOCUMENT, ARRAY, findId, findNul, valueEnd } from "./bson.as";
import { MEMBERS, NOWHERE, PLACE_SIZE, Place, WHOLE, findPath, findPolicy } from "./csv-path.as";
import { Selection, openSelection, restoreView, setFields } from "./select.as";
import { NONE, NO_ID, STATE_SIZE, State, UNSOUND, beginValue, useSelection } from "./transcode.as";

/** A column (16 bytes may be read from its name on), and where the current row has its value. `type` 0: nowhere. */
@unmanaged export class Cell {
  name: usize;
  length: usize;
  type: i32;
  at: usize;
  end: usize;
  /** The cell of the field that probably comes next. */
  following: usize;
  /** In a table of Arrow: the kind of the column, the type that most of its values have, its notes, in which row it was last. */
  kind: i32;
  own: i32;
  notes: usize;
  turn: i32;
}

export const CELL_SIZE: i32 = offsetof<Cell>();
export const SCRATCH_SIZE: usize = 1024;

/** The state of a pass between two calls. The scratch, the State for nested values, and the cells follow it. */
@unmanaged export class Table {
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
  /** What separates cells, and whether the decimals of numbers follow a comma. */
  separator: i32;
  hasComma: i32;
  /** What is shown of the rows (a Selection), and one Place (csv-path.as.ts) for each column. 0: everything is shown. */
  selection: usize;
  places: usize;
  /** Whether the columns are paths, not names. */
  arePaths: i32;
  rows: i32;
  /** Whether the current row has a field that no cell has: one without a column, or the second of its name. */
  hasRest: i32;
}

export const SCRATCH_AT: usize = offsetof<Table>();
const JSON_AT: usize = SCRATCH_AT + SCRATCH_SIZE;
const CELLS_AT: usize = (JSON_AT + <usize>STATE_SIZE + 7) & ~7;
/** The number of bytes before the cells. */
export const TABLE_SIZE: i32 = <i32>CELLS_AT;

// @ts-ignore: decorator
@inline export function cellOf(t: Table, column: i32): Cell {
  return changetype<Cell>(changetype<usize>(t) + CELLS_AT + <usize>column * offsetof<Cell>());
}

// @ts-ignore: decorator
@inline export function jsonOf(t: Table): State {
  return changetype<State>(changetype<usize>(t) + JSON_AT);
}

/** Initializes the Table of a new encoder. Its cells already have their names. */
export function tableOpen(t: Table, columns: i32, safe: i32, separator: i32, hasComma: i32): void {
  memory.fill(changetype<usize>(t), 0, CELLS_AT);
  t.columns = columns;
  t.column = -1;
  t.safe = safe;
  t.separator = separator;
  t.hasComma = hasComma;
  for (let i = 0; i < columns; i++) cellOf(t, i).following = changetype<usize>(cellOf(t, i + 1 < columns ? i + 1 : 0));
}

/** Initializes the Selection and the Places of a Table after `tableOpen`. With `arePaths`, the Places have their paths. */
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
@inline export function placeOf(t: Table, column: i32): Place {
  return changetype<Place>(t.places + <usize>column * PLACE_SIZE);
}

export function tableBegin(t: Table, at: usize, end: usize): void {
  t.at = at;
  t.end = end;
  t.column = -1;
  t.piece = NONE;
  t.rows = 0;
}

export function tableAt(t: Table): usize {
  return t.at;
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

/** Where the elements of the row at `t.at` begin. They end before `t.next - 1`. 0 when it is not sound. */
export function elementsOf(t: Table): usize {
  if (load<u8>(t.at) != DOCUMENT) return 0;
  const at = findNul(t.at + 1, t.end) + 1;
  if (at == 1) return 0;
  const next = valueEnd(DOCUMENT, at, t.end);
  if (next == 0) return 0;
  t.next = next;
  return at + 4;
}

/** Finds the columns in the row at `t.at`, which is an element of an array, as in `run`. */
export function findCells(t: Table): i32 {
  let o = elementsOf(t);
  if (o == 0) return UNSOUND;
  const last = t.next - 1;
  if (findId(o, last) == 0) return NO_ID;
  if (t.arePaths != 0) return findValues(t, o, last);
  for (let i = 0; i < t.columns; i++) cellOf(t, i).type = 0;
  t.hasRest = 0;
  let expected = cellOf(t, 0); // most rows have their fields in the order of the columns
  while (o < last) {
    const type = <i32>load<u8>(o);
    const key = o + 1;
    const cell = isNamed(expected, key, last) ? expected : cellNamed(t, key, last);
    const isKnown = changetype<usize>(cell) != 0;
    const nul = isKnown ? key + cell.length : findNul(key, last);
    if (nul == 0) return UNSOUND;
    o = valueEnd(type, nul + 1, last);
    if (o == 0) return UNSOUND;
    if (isKnown && cell.type == 0) {
      cell.type = type;
      cell.at = nul + 1;
      cell.end = o;
    } else t.hasRest = 1;
    if (isKnown) expected = changetype<Cell>(cell.following);
  }
  return o == last ? 0 : UNSOUND;
}

/** Whether the name of a cell, with its NUL, is what stands at `key`. `last` is the terminator of the document. */
// @ts-ignore: decorator
@inline export function isNamed(cell: Cell, key: usize, last: usize): bool {
  const length = cell.length;
  if (length < 16 && key + 16 <= last) {
    return (i8x16.bitmask(i8x16.eq(v128.load(key), v128.load(cell.name))) | (-2 << <i32>length)) == -1;
  }
  return length < last - key && memory.compare(key, cell.name, length + 1) == 0;
}

/** The first cell with the name at `key`. Null when there is none. */
export function cellNamed(t: Table, key: usize, last: usize): Cell {
  for (let column = 0; column < t.columns; column++) {
    const cell = cellOf(t, column);
    if (isNamed(cell, key, last)) return cell;
  }
  return changetype<Cell>(0);
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

/** Whether the policy shows the value of a cell whose column is a name. That of a path was looked at already. */
export function isShown(t: Table, cell: Cell, column: i32): bool {
  const place = placeOf(t, column);
  if (t.arePaths != 0) return true;
  return place.shows == WHOLE || (place.shows == MEMBERS && (cell.type == DOCUMENT || cell.type == ARRAY));
}

export function beginJson(t: Table, cell: Cell, column: i32): void {
  let depth: usize = 1;
  if (t.selection != 0) {
    const place = placeOf(t, column);
    const s = changetype<Selection>(t.selection);
    depth = place.depth;
    setFields(s, place.path);
    restoreView(s, depth + 1, changetype<usize>(place) + offsetof<Place>("view"));
  }
  beginValue(jsonOf(t), cell.type, cell.at, cell.end, t.next - 1, depth);
}

