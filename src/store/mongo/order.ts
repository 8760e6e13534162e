import { Binary, Decimal128, Double, Int32, Long, ObjectId } from '../bson.ts';
import { compareNumbers } from '../number.ts';

/**
 * Negative, 0 or positive, as one row's key stands before, at or behind another one's in a plan's order, ascending; null when
 * values of their types are not compared here.
 */
export function compareKeys(a: RowKey, b: RowKey): number | null {
  if (!('price' in a) && !('price' in b)) return compareIds(a._id, b._id);
  const byPrice = compareIds(a.price, b.price);
  return byPrice === 0 ? compareIds(a._id, b._id) : byPrice;
}

interface RowKey {
  readonly _id: unknown;
  readonly price?: unknown;
}

/**
 * Negative, 0 or positive, as one id, or price, stands before, at or behind another one in BSON's order; null when one of them is of
 * a type that ids in URLs, cursors and parts do not have.
 */
export function compareIds(a: unknown, b: unknown): number | null {
  const [left, right] = [rankOf(a), rankOf(b)];
  if (left === null || right === null) return null;
  const order = left === right ? compareValues(a, b) : left - right;
  return Number.isNaN(order) ? null : order; // a date beyond JavaScript's, a text that is no UTF-8
}

/** Ranks are those of MongoDB's `canonicalizeBSONType`. */
function rankOf(value: unknown): number | null {
  if (value === null) return 5;
  if ([Int32, Double, Long, Decimal128].some((type) => value instanceof type)) return 10;
  if (typeof value === 'string') return 15;
  if (value instanceof Binary) return 30;
  if (value instanceof ObjectId) return 35;
  if (typeof value === 'boolean') return 40;
  return value instanceof Date ? 45 : null;
}

/** It may stand for bytes that are no UTF-8. */
function isLossy(text: string): boolean {
  return text.includes('\ufffd');
}

function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'string' && typeof b === 'string')
    return isLossy(a) || isLossy(b) ? NaN : Buffer.compare(Buffer.from(a), Buffer.from(b));
  if (a instanceof ObjectId && b instanceof ObjectId) return Buffer.compare(a.id, b.id);
  if (a instanceof Binary && b instanceof Binary)
    return a.position - b.position || a.sub_type - b.sub_type || Buffer.compare(a.value(), b.value());
  if (a instanceof Date && b instanceof Date) return a.getTime() - b.getTime();
  if (typeof a === 'boolean' || a === null) return Number(a) - Number(b);
  return compareNumbers(a, b);
}
