import { Double, Int32, Long, ObjectId, Timestamp } from '../store/bson.ts';
import { KEY, keyOf, type Bookmark } from '../store/bookmark.ts';
import { compareNumbers } from '../store/number.ts';

/**
 * Whether an id is certainly beyond a place in the order of ids, so that a walk that is there will still meet its row.
 * False when the order is in doubt: to send a row is always right, to leave it out only saves. Stores take no collection
 * with a collation, so texts are in the order of their bytes.
 */
export function isCertainlyBeyond(id: Bookmark, place: Bookmark): boolean {
  const [one, other] = [keyOf(id)[KEY], keyOf(place)[KEY]];
  if (isPlainNumber(one) && isPlainNumber(other)) return compareNumbers(one, other) > 0;
  if (typeof one === 'string' && typeof other === 'string')
    return Buffer.compare(Buffer.from(one), Buffer.from(other)) > 0;
  if (one instanceof ObjectId && other instanceof ObjectId) return Buffer.compare(one.id, other.id) > 0;
  if (one instanceof Date && other instanceof Date) return one.getTime() > other.getTime();
  return false;
}

function isPlainNumber(value: unknown): boolean {
  if (value instanceof Double) return Number.isFinite(value.value);
  if (value instanceof Timestamp) return false; // a subclass of Long, but not a number
  return value instanceof Int32 || value instanceof Long;
}
