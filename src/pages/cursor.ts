import { AppError } from '../errors.ts';
import { BSON, BSONRegExp, EJSON } from '../store/bson.ts';
import { BSON_TYPE } from '../store/bson-types.ts';
import { KEY, keyOf, keyPaths, type Bookmark, type Identity, type RowKey } from '../store/bookmark.ts';
import type { ValueBound } from '../store/plan.ts';
import type { Equality, Plan, PointInTime } from '../store/store.ts';
import { crc32 } from '../stream/crc32.ts';
import { headOf, splitHead, VERSIONS } from './cursor-head.ts';
import { markBytes } from './mark.ts';
import { decodeToken, encodeToken } from './token.ts';
import { splitTypes, typesOfToken, valueTypes } from './value-types.ts';

/**
 * Cursor: a bookmark as clients carry it, in a token (see token.ts) of the types of the plan's values (see
 * value-types.ts), and then
 *
 *     version 5: fingerprint of collection and plan (CRC-32, 4 bytes) | bookmark (BSON)
 *     version 6: fingerprint | point in time (8 bytes, little-endian) | bookmark
 *     version 7: fingerprint | mark of the collection's identity (4 bytes) | bookmark
 *     version 8: fingerprint | point in time | mark | bookmark
 *
 *     versions 12 and 13: as 6 and 8, but the time is the earliest that reads may see (Plan.since)
 *
 * Versions 5, 6 and 12 are for a store whose collections have no identity. Version 9 is the cursor of a feed (see
 * changes/cursor.ts). Versions 1 to 4, 10 and 11 had no types.
 */
const FINGERPRINT_BYTES = 4;
/** Characters. With the rest of a URL it is below the limit for that: see http/respond.ts. */
export const MAX_CURSOR_BYTES = 12 * 1024;
/**
 * The cursor of a bookmark up to this size, in bytes, is never longer than MAX_CURSOR_BYTES. Beside the bookmark a token
 * has at most 277 bytes: version 1, types 256, fingerprint 4, time 8, mark 4, checksum 4. Base64 makes 4 characters of 3
 * bytes, so such a cursor has at most 11,292 characters.
 */
export const ALWAYS_FITS_BYTES = 8 * 1024;

/**
 * What a cursor carries: the row to continue after, the time of the rows (absent: the present), and their collection.
 */
export interface Place {
  readonly after: Bookmark;
  readonly at?: PointInTime;
  /** The earliest time that reads may see: see Plan. */
  readonly since?: PointInTime;
  /** See mark.ts. A page continues in any collection of the name, a stream only in the same one. */
  readonly mark?: number;
}

/**
 * Whether a cursor can continue after this bookmark, whatever its length. MongoDB takes no regular expression as an
 * operand, and no array is a place. The key is none of these, so the sort alone decides: the first element.
 */
export function isPlace(bookmark: Bookmark): boolean {
  const type = bookmark[TYPE_AT];
  return type !== BSON_TYPE.regularExpression && type !== BSON_TYPE.array;
}

/** Where the type of a document's first element is. */
const TYPE_AT = 4;

/** As encodeCursor; undefined when no cursor that this server takes can continue after the row. */
export function cursorThatFits(
  collection: string,
  plan: Plan,
  bookmark: Bookmark,
  identity?: Identity,
): string | undefined {
  if (!isPlace(bookmark) || bookmark.length > MAX_CURSOR_BYTES) return undefined; // a key may have megabytes, so do not encode it first
  const cursor = encodeCursor(collection, plan, bookmark, identity);
  return cursor.length <= MAX_CURSOR_BYTES ? cursor : undefined;
}

/**
 * The cursor that continues after a bookmark of this plan, at the plan's point in time, in the collection with this
 * name and the plan's identity. `identity` is that of the collection that was read, for a plan without one.
 */
export function encodeCursor(
  collection: string,
  plan: Plan,
  bookmark: Bookmark,
  identity?: Identity,
): string {
  const { identity: own = identity } = plan;
  const { version, time } = headOf(plan, own !== undefined);
  const content: Uint8Array[] = [valueTypes(plan), fingerprint(collection, plan), ...time];
  if (own !== undefined) content.push(markBytes(own));
  content.push(bookmark);
  return encodeToken(version, ...content);
}

/** The types of the values that a cursor was made with. Null when it carries none, or is broken. */
export function typesOfCursor(cursor: string): Uint8Array | null {
  return typesOfToken(cursor, VERSIONS);
}

/**
 * Decodes a cursor. AppError `cursor-mismatch` when it was made for another collection, sort, filter, range, or point
 * in time (`plan.at`; a plan without one accepts any), `invalid-cursor` when it is not a valid cursor of this server.
 */
export function decodeCursor(cursor: string, collection: string, plan: Plan): Place {
  const token = decodeToken(cursor, VERSIONS);
  if (typeof token === 'string') throw invalid(token);
  const content = splitTypes(token.content)?.rest;
  if (!content) throw invalid('it is too short');
  if (content.length < FINGERPRINT_BYTES) throw invalid('it is too short');
  const head = splitHead(token.version, content.subarray(FINGERPRINT_BYTES));
  if (!head) throw invalid('it is too short');
  if (!content.subarray(0, FINGERPRINT_BYTES).equals(fingerprint(collection, plan)))
    throw cursorMismatch(
      'The cursor belongs to another collection, sort, filter or range. Repeat those of the request that it came from.',
    );
  const after = new Uint8Array(head.rest) as Bookmark;
  check(after, plan);
  const { times, mark } = head;
  if (times.since === 0n) throw invalid('its time is none');
  if (plan.at !== undefined && plan.at !== times.at)
    throw cursorMismatch(
      'The cursor belongs to another point in time than at. Omit at, or repeat its value.',
    );
  return { after, ...times, ...(mark !== undefined && { mark }) };
}

/** The error for a sound cursor that was made for something else than the request asks for. */
export function cursorMismatch(detail: string, parameter = 'cursor'): AppError {
  return new AppError('cursor-mismatch', detail, { parameter });
}

/**
 * Everything that a request asks for except the time: what decides which rows come in which order, as a CRC-32 of four
 * bytes. The values of a key's part are left out: whoever has the cursor could try guesses of hidden ones without a
 * request. Nothing depends on them here, because each read is bounded by the part of its own key.
 */
export function fingerprint(collection: string, plan: Plan): Buffer {
  const bytes = Buffer.allocUnsafe(FINGERPRINT_BYTES);
  const number = crc32(
    JSON.stringify([
      collection,
      plan.sort === KEY ? 'id' : plan.sort,
      plan.direction,
      equalsMark(plan.equals ?? []),
      ...rangeMark(plan.range),
      ...(plan.ids ? [boundText(plan.ids.from), boundText(plan.ids.to)] : []),
    ]),
  );
  bytes.writeUInt32LE(number);
  return bytes;
}

/** The equalities of a plan with the types of their values, the same in whatever order an index has them. */
function equalsMark(equals: readonly Equality[]): unknown {
  if (equals.length === 0) return null;
  const sorted = equals.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return sorted.map(({ path, value }) => [path, EJSON.stringify(value, { relaxed: false })]);
}

function rangeMark(range: Plan['range']): readonly unknown[] {
  if (!range) return [null, null];
  const mark = (bound: ValueBound | undefined) =>
    bound ? [EJSON.stringify(bound.value, { relaxed: false }), bound.isInclusive] : null;
  return [range.bracket, mark(range.low), mark(range.high)];
}

function boundText(bound: Bookmark | undefined): string | null {
  return bound ? Buffer.from(bound).toString('hex') : null;
}

/**
 * A forged cursor may carry a sound checksum with any content. Only sound keys pass: from one outside of the plan's range
 * a read continues within the range. AppError `invalid-cursor` for all others.
 */
function check(bookmark: Bookmark, plan: Plan): void {
  const key = parse(bookmark);
  const paths = keyPaths(plan);
  if (Object.keys(key).join() !== paths.join()) throw invalid('its key has other fields than the sort');
  if (!paths.every((path) => isKeyValue(key[path]))) throw invalid('its key values are not valid');
}

function parse(bookmark: Bookmark): RowKey {
  try {
    return keyOf(bookmark);
  } catch (error) {
    if (BSON.BSONError.isBSONError(error)) throw invalid('its key is not BSON', error);
    throw error;
  }
}

/**
 * Whether a value may be part of a key. An id may be anything that MongoDB accepts as one. Documents are safe even when their names begin with $: keys are bounds in `min` and
 * `max`, or operands of $eq, $ne and $lt, which are values and never queries. Arrays and regular expressions are not
 * safe: an array is no id and matches by its elements, and a regular expression is refused as an operand.
 */
export function isKeyValue(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return value !== undefined;
  return !Array.isArray(value) && !(value instanceof RegExp) && !(value instanceof BSONRegExp);
}

function invalid(reason: string, cause?: unknown): AppError {
  return new AppError(
    'invalid-cursor',
    `The cursor is not valid: ${reason}. Use the cursor of a page, a checkpoint or an end unchanged.`,
    {
      parameter: 'cursor',
      cause,
    },
  );
}
