import { BSON, BSONRegExp, EJSON } from '../../store/values/bson.ts';
import { BSON_TYPE } from '../../store/values/bson-types.ts';
import { KEY, keyOf, keyPaths, type Bookmark, type Identity, type RowKey } from '../../store/bookmark.ts';
import { placeAmong } from '../../store/among/among-plans.ts';
import type { ValueBound } from '../../store/plan.ts';
import type { Equality, Plan } from '../../store/store.ts';
import { crc32 } from '../../pipeline/crc32.ts';
import { cursorMismatch, encodeToken, refusal, type Token, type TokenHead } from './token.ts';

/** Cursor: a bookmark as clients carry it, the body of a token (see token.ts). */

/** Characters. With the rest of a URL it is below the limit for that: see http/respond.ts. */
export const MAX_CURSOR_BYTES = 12 * 1024;
/**
 * Bytes. Beside such a bookmark a token has at most 290: kind and form 2, types 256, fingerprint 4, time 8, identity
 * 16, checksum 4. In base64 that is at most 11,310 characters, below MAX_CURSOR_BYTES.
 */
export const ALWAYS_FITS_BYTES = 8 * 1024;

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

/** The cursor after a bookmark of this plan. `identity`: of the collection that was read, for a plan without one. */
export function encodeCursor(
  collection: string,
  plan: Plan,
  bookmark: Bookmark,
  identity?: Identity,
): string {
  const { identity: own = identity } = plan;
  const head = { ...headOf(collection, plan), ...(own !== undefined && { identity: own }) };
  return encodeToken('row', head, bookmark);
}

/** What the token of any walk through the rows of a plan says of it. */
export function headOf(collection: string, plan: Plan): TokenHead {
  const { at, since } = plan;
  const time = at !== undefined ? { at } : since !== undefined ? { since } : {};
  return { types: valueTypes(plan), fingerprint: fingerprint(collection, plan), ...time };
}

/** The BSON type of a value, given as a BSON class. */
export function typeOf(value: unknown): number {
  return typeof value === 'string' ? BSON_TYPE.string : (BSON.serialize({ value })[TYPE_AT] ?? 0);
}

/**
 * The BSON types of the values that a plan was asked with: those of its equalities, in the order of their paths, then
 * that of its range, then those of its several values. A token carries no values: those always come from the request, or, unasked, from its key.
 */
export function valueTypes({ equals = [], range, among }: Plan): Uint8Array {
  const types = equals.toSorted((a, b) => (a.path < b.path ? -1 : 1)).map(({ value }) => typeOf(value));
  if (range) types.push(range.bracket);
  types.push(...(among?.values ?? []).map(typeOf));
  return Uint8Array.from(types);
}

/**
 * The row that a cursor continues after. AppError `cursor-mismatch` when it is of another collection, sort, filter,
 * range, or time (`plan.at`; without, any passes), `invalid-cursor` when its body is no bookmark of the plan.
 */
export function rowBehind(token: Token, collection: string, plan: Plan): Bookmark {
  if (token.fingerprint !== fingerprint(collection, plan))
    throw cursorMismatch(
      'The cursor belongs to another collection, sort, filter or range. Repeat those of the request that it came from.',
    );
  const after = new Uint8Array(token.body) as Bookmark;
  check(after, plan, token);
  if (plan.at !== undefined && plan.at !== token.at)
    throw cursorMismatch(
      'The cursor belongs to another point in time than at. Omit at, or repeat its value.',
    );
  return after;
}

/**
 * A CRC-32 of all but the time that decides which rows come in which order. The values of a key's part are left out:
 * who has the cursor could try guesses of hidden ones without a request. Each read is bounded by its own key's part.
 */
export function fingerprint(collection: string, plan: Plan): number {
  return crc32(
    JSON.stringify([
      collection,
      plan.sort === KEY ? 'id' : plan.sort,
      plan.direction,
      equalsMark(plan.equals ?? []),
      ...rangeMark(plan.range),
      ...amongMark(plan.among),
      ...(plan.ids ? [boundText(plan.ids.from), boundText(plan.ids.to)] : []),
    ]),
  );
}

/** The equalities of a plan with the types of their values, the same in whatever order an index has them. */
function equalsMark(equals: readonly Equality[]): unknown {
  if (equals.length === 0) return null;
  const sorted = equals.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return sorted.map(({ path, value }) => [path, EJSON.stringify(value, { relaxed: false })]);
}

/** Absent without several values: cursors of other plans are as before. */
function amongMark(among: Plan['among']): readonly unknown[] {
  return among ? [among.path, among.values.map((value) => EJSON.stringify(value, { relaxed: false }))] : [];
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
function check(bookmark: Bookmark, plan: Plan, token: Token): void {
  const key = keyIn(bookmark, token);
  const paths = keyPaths(plan);
  if (Object.keys(key).join() !== paths.join())
    throw refusal(token, 'its key has other fields than the sort');
  if (!paths.every((path) => isKeyValue(key[path]))) throw refusal(token, 'its key values are not valid');
  if (plan.among && placeAmong(plan.among, bookmark) < 0)
    throw refusal(token, 'its row has none of the values that are asked for');
}

/** The key of a bookmark that a client sent. AppErrors as refusal, when it is not BSON. */
export function keyIn(bookmark: Bookmark, token: Token): RowKey {
  try {
    return keyOf(bookmark);
  } catch (error) {
    if (BSON.BSONError.isBSONError(error)) throw refusal(token, 'its key is not BSON', undefined, error);
    throw error;
  }
}

/**
 * Whether a value may be in a key. Documents are safe even when their names begin with $: keys are bounds in `min` and
 * `max`, or operands of $eq, $ne and $lt, which are values and never queries. An array is no id and matches by its
 * elements, and a regular expression is refused as an operand.
 */
export function isKeyValue(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return value !== undefined;
  return !Array.isArray(value) && !(value instanceof RegExp) && !(value instanceof BSONRegExp);
}
