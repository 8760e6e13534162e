// Rows as the body of an Arrow record batch (https://arrow.apache.org/docs/format/Columnar.html): the buffers of one
// column after the other, each from a multiple of 8 bytes on. arrowFind reads every row once and notes for each cell
// its type and place. arrowWrite writes each column from these notes, so a body grows at its end only. What does not
// fit its column is null there, and is in the last one, `_rest`, as JSON text, with the fields that no column has.
import { FULL, STEP_ROOM, beginCell, stop, stopped, writeJson, writeRest } from "./arrow-json.as";
import { Arrow, BYTES, FLAG, INTEGER, JSON, KEY, NUMERAL, SCALED, TEXT, TIME, UUID, places, rests, types } from "./arrow-rows.as";
import { writeObjectId, writeUuid } from "./binary.as";
import { ANY, writeRaw } from "./csv-text.as";
import { scaledHigh, scaledLow, toScale } from "./decimal.as";
import { writeDecimal128 } from "./numbers.as";
import { Table } from "./table.as";

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

export const PART_SIZE: i32 = offsetof<Part>();

/** Writes the body to [out, limit), from a multiple of 8. Returns its length, FULL (try with more room) or an error. */
export function arrowWrite(a: Arrow, out: usize, limit: usize): i32 {
  const t = changetype<Table>(a.table);
  const columns = <usize>t.columns;
  let p = out;
  for (let column: usize = 0; column <= columns; column++) {
    if (column == columns && a.hasRest == 0) break;
    const part = partOf(a, column);
    if (limit - p < (a.rows << 4) + STEP_ROOM) return FULL; // all but the bytes of texts
    const flags = column == columns ? rests(a) : types(a, column);
    p = writeValidity(part, flags, a.rows, out, p);
    part.offsetsLength = 0;
    const kind = column == columns ? JSON : <i32>load<u8>(a.kinds + column);
    if (kind >= INTEGER && kind <= TIME) {
      part.dataAt = <u32>(p - out);
      p = writeNumbers(a, column, kind, p);
    } else if (kind >= SCALED) {
      while ((p - out) & 15) store<u8>(p++, 0); // readers align numbers of 16 bytes
      part.dataAt = <u32>(p - out);
      p = writeScaled(a, column, kind - SCALED, p);
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

/** Writes the values of a column of decimals, 16 bytes each. Nulls are 0. */
function writeScaled(a: Arrow, column: usize, scale: i32, p: usize): usize {
  for (let row: usize = 0; row < a.rows; row++, p += 16) {
    const type = <i32>load<u8>(types(a, column) + row);
    const isNull = type == 0 || !toScale(type, <usize>load<u32>(places(a, column) + (row << 3)), scale);
    store<u64>(p, isNull ? 0 : scaledLow);
    store<u64>(p, isNull ? 0 : scaledHigh, 8);
  }
  return p;
}

/** Writes the offsets and the bytes of a column of texts. Returns where they end; 0: see `stopped`. */
function writeTexts(a: Arrow, column: usize, kind: i32, offsets: usize, data: usize, limit: usize): usize {
  const t = changetype<Table>(a.table);
  const rows = a.rows;
  const isRest = column == <usize>t.columns;
  const flags = isRest ? rests(a) : types(a, column);
  const cells = places(a, column);
  let p = data;
  for (let row: usize = 0; row < rows; row++) {
    store<u32>(offsets + (row << 2), <u32>(p - data));
    const type = <i32>load<u8>(flags + row);
    if (type == 0) continue;
    if (isRest) {
      p = writeRest(a, row, p, limit);
      if (p == 0) return 0;
      continue;
    }
    const o = <usize>load<u32>(cells + (row << 3));
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
      case KEY: p = withoutQuotes(p, load<u8>(p - 1), writeObjectId(o, p - 1)); break;
      case UUID: p = withoutQuotes(p, load<u8>(p - 1), writeUuid(o + 5, p - 1)); break;
      case NUMERAL: p = writeDecimal128(o, p); break;
      default: { // the old subtype 2 repeats the length inside the value
        const skipped: usize = load<u8>(o, 4) == 2 ? 4 : 0;
        memory.copy(p, o + 5 + skipped, size - skipped);
        p += size - skipped;
      }
    }
  }
  store<u32>(offsets + (rows << 2), <u32>(p - data));
  return p;
}

/** Copies [o, e) as UTF-8, with U+FFFD in place of what is none. A NUL is at `e`. `end` is where the batch ends. */
// @ts-ignore: decorator
@inline function copyText(o: usize, e: usize, p: usize, end: usize): usize {
  const size = e - o;
  if (o + size + 16 > end) return writeRaw(o, e, p, usize.MAX_VALUE, end, ANY);
  let all = i8x16.splat(0);
  let at: usize = 0;
  for (; at + 16 <= size; at += 16) {
    const v = v128.load(o + at);
    v128.store(p + at, v);
    all = v128.or(all, v);
  }
  const v = v128.load(o + at);
  v128.store(p + at, v);
  const above = i8x16.bitmask(v) & ((1 << <i32>(size - at)) - 1);
  return (i8x16.bitmask(all) | above) == 0 ? p + size : writeRaw(o, e, p, usize.MAX_VALUE, end, ANY);
}

/** Restores the byte before `p`, over which the first quote of a text up to `end` was written. Returns where it ends. */
// @ts-ignore: decorator
@inline function withoutQuotes(p: usize, before: u8, end: usize): usize {
  store<u8>(p - 1, before);
  return end - 1;
}
