import { BSON, MaxKey, MinKey, onDemand } from './bson.ts';
import type { Bookmark } from './bookmark.ts';
import { compareKeys, joinKeys, type Key } from './keys.ts';
import { keyOfAny } from './value-keys.ts';

/*
 * The order of BSON values in both stores, which is MongoDB's (`bsonWoCompare`): values are compared by their keys, as
 * bytes. A collection with a collation of its own is not served, so texts are in the order of their bytes.
 */

/**
 * Returns a negative number, 0 or a positive number when one bookmark is before, at the same place as or behind another in
 * ascending order. Both are of one order. Numbers of one value are at one place, whatever their types. BSON errors and
 * TypeErrors for bytes that are no bookmark.
 */
export function comparePlaces(a: Bookmark, b: Bookmark): number {
  return compareKeys(keyOfPlace(a), keyOfPlace(b));
}

/** The same of two values, each a BSON class or a JavaScript value that BSON writes unchanged. Undefined is null. */
export function compareValues(a: unknown, b: unknown): number {
  const [side, other] = [sideOf(a), sideOf(b)];
  return side !== 0 || other !== 0 ? side - other : compareKeys(keyOfValue(a), keyOfValue(b));
}

/** Whether a value lies before all others, or behind them. Most comparisons are with such bounds. */
function sideOf(value: unknown): -1 | 0 | 1 {
  return value instanceof MinKey ? -1 : value instanceof MaxKey ? 1 : 0;
}

/** The key of a value. */
export function keyOfValue(value: unknown): Key {
  return keyOfPlace(BSON.serialize({ value: value ?? null }));
}

/** The bytes by which a bookmark is ordered: the keys of its values, joined. */
export function keyOfPlace(bookmark: Uint8Array): Key {
  const keys: Key[] = [];
  for (const [type, , , at, length] of onDemand.parseToElements(bookmark))
    keys.push(keyOfAny({ type, bytes: bookmark.subarray(at, at + length) }));
  return joinKeys(...keys);
}
