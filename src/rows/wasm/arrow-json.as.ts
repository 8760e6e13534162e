// The JSON text in an Arrow record batch: that of columns of mixed values, and the column `_rest`.
import { NULL, UNDEFINED, findNul, valueEnd } from "./bson.as";
import { Arrow, begins, fits, isInCell, isOtherShown, lasts } from "./arrow-rows.as";
import { Table, beginJson, cellOf, findCells, isShown, jsonOf } from "./table.as";
import { writeText } from "./text.as";
import { beginValue, isValueWritten, step } from "./transcode.as";

/** What arrowWrite returns when the body needs more room. */
export const FULL: i32 = -4;
/** At least this much room is left for a step of JSON text. */
export const STEP_ROOM: usize = 512;

/** Why a function that writes texts returned 0: FULL or a negative error. */
export let stopped: i32 = 0;

export function stop(why: i32): usize {
  stopped = why;
  return 0;
}

/** Starts the JSON text of a cell. What a path leads to has a view of its own, so it is looked for again. */
export function beginCell(a: Arrow, column: i32, row: usize, type: i32, o: usize): void {
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
export function writeJson(t: Table, p: usize, limit: usize): usize {
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
export function writeRest(a: Arrow, row: usize, p: usize, limit: usize): usize {
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
