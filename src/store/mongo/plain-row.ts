import { isUtf8 } from 'node:buffer';
import { sizeAt, sizeOfValue } from '../bson-size.ts';
import { BSON_TYPE } from '../bson-types.ts';

/** Types whose bytes MongoDB stores as they are. Binaries only with the subtypes that have no rules of their own. */
const PLAIN: ReadonlySet<number> = new Set([
  ...[BSON_TYPE.double, BSON_TYPE.string, BSON_TYPE.document, BSON_TYPE.array, BSON_TYPE.binary],
  ...[BSON_TYPE.objectId, BSON_TYPE.boolean, BSON_TYPE.date, BSON_TYPE.null],
  ...[BSON_TYPE.int32, BSON_TYPE.int64, BSON_TYPE.decimal128],
]);
const PLAIN_BINARIES: readonly number[] = [0, 4];
const MAX_DEPTH = 32;
/** The upper half of the milliseconds of a date that JavaScript has, too: 8.64e15 at most. */
const FARTHEST = 2_000_000;
/** Names of a document that are compared with each other. One with more is left to the driver. */
const MOST_NAMES = 64;

/** Whether a row can be sent as it is: its bytes are a BSON document with an `_id` that MongoDB stores unchanged. */
export function isPlainRow(row: Uint8Array): boolean {
  if (row.length < 5 || sizeAt(row, 0) !== row.length) return false;
  let id = 0;
  const isPlain = arePlain(row, 0, row.length, 1, (type, name, end) => {
    if (isName(row, name, end, '_id')) id = type;
    return row[name] !== 0x24; // a name that begins with $ has rules of its own
  });
  return isPlain && id !== 0 && id !== BSON_TYPE.array;
}

type See = (type: number, nameAt: number, nameEnd: number) => boolean;

/** Whether the members of the document at `from` are plain, and `see` accepts each of the outermost. */
function arePlain(row: Uint8Array, from: number, to: number, depth: number, see: See | null): boolean {
  if (depth > MAX_DEPTH || row[to - 1] !== 0 || to - from < 5) return false;
  const names: number[] = [];
  const end = to - 1;
  let at = from + 4;
  while (at < end) {
    const type = row[at] ?? 0;
    const name = at + 1;
    let valueAt = name;
    while (valueAt < end && row[valueAt] !== 0) valueAt++;
    if (names.length >= 2 * MOST_NAMES || isAmong(row, names, name, valueAt)) return false;
    names.push(name, valueAt);
    const nameEnd = valueAt++;
    const size = PLAIN.has(type) ? sizeOfValue(row, type, valueAt) : -1;
    at = valueAt + size;
    if (size < 0 || at > end || !isAscii(row, name, nameEnd)) return false;
    if (!isPlainValue(row, type, valueAt, at, depth)) return false;
    if (see && !see(type, name, nameEnd)) return false;
  }
  return at === end;
}

function isPlainValue(row: Uint8Array, type: number, at: number, to: number, depth: number): boolean {
  switch (type) {
    case BSON_TYPE.string:
      return to - at >= 5 && row[to - 1] === 0 && isText(row, at + 4, to - 1);
    case BSON_TYPE.document:
    case BSON_TYPE.array:
      return sizeAt(row, at) === to - at && arePlain(row, at, to, depth + 1, null);
    case BSON_TYPE.binary:
      return PLAIN_BINARIES.includes(row[at + 4] ?? -1);
    case BSON_TYPE.boolean:
      return (row[at] ?? 2) <= 1;
    case BSON_TYPE.date:
      return Math.abs(sizeAt(row, at + 4)) < FARTHEST;
    default:
      return true;
  }
}

/** Whether the document has given the name already. `names`: where each name begins and ends. */
function isAmong(row: Uint8Array, names: readonly number[], from: number, to: number): boolean {
  for (let n = 0; n < names.length; n += 2) {
    const [start = 0, end = 0] = [names[n], names[n + 1]];
    if (end - start !== to - from) continue;
    let same = 0;
    while (same < to - from && row[start + same] === row[from + same]) same++;
    if (same === to - from) return true;
  }
  return false;
}

function isName(row: Uint8Array, from: number, to: number, name: string): boolean {
  if (to - from !== name.length) return false;
  for (let n = 0; n < name.length; n++) if (row[from + n] !== name.charCodeAt(n)) return false;
  return true;
}

function isText(row: Uint8Array, from: number, to: number): boolean {
  return isAscii(row, from, to) || isUtf8(row.subarray(from, to));
}

function isAscii(row: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if ((row[at] ?? 0) >= 0x80) return false;
  return true;
}
