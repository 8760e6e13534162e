import {
  BSONRegExp,
  Binary,
  Code,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
} from '../bson.ts';
import { BSON_RANK } from '../bson-types.ts';
import { KEY, type Ordered, type RowKey } from '../bookmark.ts';
import { compareNumbers } from '../number.ts';

/**
 * Returns a negative number, 0 or a positive number when the key of one row is before, equal to or after another in
 * the ascending order of a plan. Null when values of these types are not compared here.
 */
export function compareKeys(a: RowKey, b: RowKey, { sort }: Ordered): number | null {
  const bySort = compareIds(a[sort], b[sort]);
  return bySort === 0 && sort !== KEY ? compareIds(a._id, b._id) : bySort;
}

/**
 * Returns a negative number, 0 or a positive number when one value is before, equal to or after another in
 * BSON's order. Null when one has a type that is not compared here, or when its place cannot be determined.
 */
export function compareIds(a: unknown, b: unknown): number | null {
  const [left, right] = [rankOf(a), rankOf(b)];
  if (left === null || right === null) return null;
  const order = left === right ? compareValues(a, b) : left - right;
  return order === null || Number.isNaN(order) ? null : order; // a date beyond JavaScript's range, or invalid UTF-8
}

/** The rank of a value's type. Null for a type that is not compared here. Timestamp is checked first because its class extends Long. */
function rankOf(value: unknown): number | null {
  if (value === null) return BSON_RANK.null;
  if (typeof value === 'string') return BSON_RANK.string;
  if (typeof value === 'boolean') return BSON_RANK.boolean;
  if (typeof value === 'number') return BSON_RANK.number;
  if (value instanceof Timestamp) return BSON_RANK.timestamp;
  if ([Int32, Double, Long, Decimal128].some((type) => value instanceof type)) return BSON_RANK.number;
  if (value instanceof Binary) return BSON_RANK.binary;
  if (value instanceof ObjectId) return BSON_RANK.objectId;
  if (value instanceof Date) return BSON_RANK.date;
  if (value instanceof Code) return value.scope ? BSON_RANK.scopedCode : BSON_RANK.code;
  if (value instanceof MinKey) return BSON_RANK.minKey;
  if (value instanceof MaxKey) return BSON_RANK.maxKey;
  if (Array.isArray(value)) return BSON_RANK.array;
  if (value instanceof BSONRegExp) return BSON_RANK.regularExpression;
  return isDocument(value) ? BSON_RANK.document : null;
}

/** The text may stand for bytes that are not valid UTF-8. */
function isLossy(text: string): boolean {
  return text.includes('\ufffd');
}

function compareValues(a: unknown, b: unknown): number | null {
  if (typeof a === 'string' && typeof b === 'string')
    return isLossy(a) || isLossy(b) ? null : compareTexts(a, b);
  if (a instanceof ObjectId && b instanceof ObjectId) return Buffer.compare(a.id, b.id);
  if (a instanceof Binary && b instanceof Binary)
    return a.position - b.position || a.sub_type - b.sub_type || Buffer.compare(a.value(), b.value());
  if (a instanceof Date && b instanceof Date) return a.getTime() - b.getTime();
  if (a instanceof Timestamp && b instanceof Timestamp) return a.t - b.t || a.i - b.i;
  if (a instanceof Code && b instanceof Code)
    return compareTexts(a.code, b.code) || compareDocuments(a.scope ?? {}, b.scope ?? {});
  if (a instanceof BSONRegExp && b instanceof BSONRegExp)
    return compareTexts(a.pattern, b.pattern) || compareTexts(a.options, b.options);
  if (typeof a === 'boolean' || a === null) return Number(a) - Number(b);
  if (a instanceof MinKey || a instanceof MaxKey) return 0;
  if ((Array.isArray(a) && Array.isArray(b)) || (isDocument(a) && isDocument(b)))
    return compareDocuments(a, b);
  return compareNumbers(a, b);
}

/**
 * Compares field by field: by type, then name, then value. When one document begins with all of the other, the shorter
 * comes first.
 */
function compareDocuments(a: object, b: object): number | null {
  const [left, right] = [membersOf(a), membersOf(b)];
  for (const [n, [name, value]] of left.entries()) {
    const other = right[n];
    if (!other) return 1;
    const [rank, otherRank] = [rankOf(value), rankOf(other[1])];
    if (rank === null || otherRank === null) return null;
    const order = rank - otherRank || compareTexts(name, other[0]) || compareValues(value, other[1]);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

function membersOf(document: object): readonly (readonly [string, unknown])[] {
  return document instanceof Map ? [...(document as Map<string, unknown>)] : Object.entries(document);
}

function compareTexts(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/**
 * Whether a value is a document: a Map, as BSON documents are decoded here, or a plain object. A value with a class of
 * its own has another type.
 */
function isDocument(value: unknown): value is object {
  if (value instanceof Map) return true;
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
