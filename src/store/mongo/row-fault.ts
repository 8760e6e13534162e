import { isUtf8 } from 'node:buffer';
import { sizeAt, sizeOfValue } from '../bson-size.ts';
import { BSON_TYPE } from '../bson-types.ts';

/** MongoDB stores no more levels of documents and arrays. */
const MAX_DEPTH = 180;
/** The farthest milliseconds of a date in JavaScript, on either side of 1970. */
const FARTHEST = 8.64e15;
/** Names of a document that are compared with each other. More are looked up in a set. */
const MOST_NAMES = 64;

const NO_DOCUMENT = 'the bytes are no BSON document';
const CHANGED =
  'it has a value that cannot be stored unchanged (a deprecated type, a duplicate field name, a date out of range)';

/** What the names of a row's own fields say. */
export interface RowNames {
  hasId: boolean;
  /** Whether one begins with $, as the operators of updates do. */
  hasOperators: boolean;
}

/**
 * Why MongoDB would not store these bytes as they are. Null: they are a BSON document with an `_id`, and it stores them
 * unchanged. Fills in `names`.
 */
export function rowFault(row: Uint8Array, names: RowNames): string | null {
  if (row.length < 5 || sizeAt(row, 0) !== row.length) return NO_DOCUMENT;
  return documentFault(row, 0, row.length, 1, false, names) ?? (names.hasId ? null : '_id is missing');
}

/** The fault of the document, or the array, between two places. `outer` is given for the row itself. */
function documentFault(
  row: Uint8Array,
  from: number,
  to: number,
  depth: number,
  isArray: boolean,
  outer: RowNames | null,
): string | null {
  if (depth > MAX_DEPTH) return `it has more than ${MAX_DEPTH} levels of documents`;
  if (row[to - 1] !== 0 || to - from < 5) return NO_DOCUMENT;
  const names: number[] = [];
  const end = to - 1;
  let at = from + 4;
  while (at < end) {
    const type = row[at] ?? 0;
    const name = at + 1;
    const nameEnd = endOfText(row, name, end);
    if (!isText(row, name, nameEnd)) return NO_DOCUMENT;
    if (isArray ? !isNumber(row, name, nameEnd, names.length / 2) : isAmong(row, names, name, nameEnd))
      return CHANGED;
    if (outer) see(row, name, nameEnd, outer);
    names.push(name, nameEnd);
    at = endOfValue(row, type, nameEnd + 1, end);
    if (at < 0 || at > end) return NO_DOCUMENT;
    const fault = valueFault(row, type, nameEnd + 1, at, depth);
    if (fault !== null) return fault;
  }
  if (at !== end) return NO_DOCUMENT;
  return !isArray && names.length > 2 * MOST_NAMES && areTwice(row, names) ? CHANGED : null;
}

/** Where a value ends. -1 when that is not known. */
function endOfValue(row: Uint8Array, type: number, at: number, end: number): number {
  if (type === BSON_TYPE.regularExpression) return endOfText(row, endOfText(row, at, end) + 1, end) + 1;
  const size = type === BSON_TYPE.dbPointer ? sizeAt(row, at) + 16 : sizeOfValue(row, type, at);
  return size < 0 ? -1 : at + size;
}

function valueFault(row: Uint8Array, type: number, at: number, to: number, depth: number): string | null {
  switch (type) {
    case BSON_TYPE.string:
    case BSON_TYPE.code:
    case BSON_TYPE.symbol:
      return to - at >= 5 && row[to - 1] === 0 && isText(row, at + 4, to - 1) ? null : NO_DOCUMENT;
    case BSON_TYPE.document:
    case BSON_TYPE.array:
      return documentFault(row, at, to, depth + 1, type === BSON_TYPE.array, null);
    case BSON_TYPE.boolean:
      return (row[at] ?? 2) <= 1 ? null : NO_DOCUMENT;
    case BSON_TYPE.date:
      return Math.abs(sizeAt(row, at + 4) * 2 ** 32 + (sizeAt(row, at) >>> 0)) <= FARTHEST ? null : CHANGED;
    case BSON_TYPE.regularExpression:
      return isText(row, at, to) ? null : NO_DOCUMENT;
    case BSON_TYPE.scopedCode: {
      const scope = at + 8 + sizeAt(row, at + 4);
      const isSound =
        scope > at + 8 && scope + 5 <= to && row[scope - 1] === 0 && isText(row, at + 8, scope - 1);
      return isSound && sizeAt(row, scope) === to - scope
        ? documentFault(row, scope, to, depth + 1, false, null)
        : NO_DOCUMENT;
    }
    case BSON_TYPE.undefined:
    case BSON_TYPE.dbPointer:
      return CHANGED;
    default:
      return null;
  }
}

function see(row: Uint8Array, from: number, to: number, names: RowNames): void {
  if (row[from] === 0x24) names.hasOperators = true;
  if (to - from === 3 && row[from] === 0x5f && row[from + 1] === 0x69 && row[from + 2] === 0x64)
    names.hasId = true;
}

/** Where the NUL behind a text is. */
function endOfText(row: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && row[at] !== 0) at++;
  return at;
}

/** Whether a name was given already. `names`: where each name begins and ends. */
function isAmong(row: Uint8Array, names: readonly number[], from: number, to: number): boolean {
  if (names.length > 2 * MOST_NAMES) return false; // see areTwice
  for (let n = 0; n < names.length; n += 2) {
    const [start = 0, end = 0] = [names[n], names[n + 1]];
    if (end - start !== to - from) continue;
    let same = 0;
    while (same < to - from && row[start + same] === row[from + same]) same++;
    if (same === to - from) return true;
  }
  return false;
}

function areTwice(row: Uint8Array, names: readonly number[]): boolean {
  const known = new Set<string>();
  for (let n = 0; n < names.length; n += 2)
    known.add(Buffer.from(row.subarray(names[n], names[n + 1])).toString('latin1'));
  return known.size < names.length / 2;
}

/** Whether the name of an element of an array is its number. */
function isNumber(row: Uint8Array, from: number, to: number, number: number): boolean {
  let [at, rest] = [to, number];
  do {
    if (--at < from || row[at] !== 0x30 + (rest % 10)) return false;
    rest = Math.floor(rest / 10);
  } while (rest > 0);
  return at === from;
}

function isText(row: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if ((row[at] ?? 0) >= 0x80) return isUtf8(row.subarray(from, to));
  return true;
}
