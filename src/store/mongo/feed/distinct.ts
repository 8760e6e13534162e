import { keyOf, type Bookmark } from '../../bookmark.ts';
import { BSON_TYPE } from '../../bson-types.ts';
import { Decimal128, Double, Int32, Long, Timestamp } from '../../bson.ts';
import { compareIds } from '../order.ts';

/** Types of ids that can be equal although their bytes differ: numbers, and what has numbers in it. */
const LOOSE: ReadonlySet<number> = new Set([
  ...[BSON_TYPE.double, BSON_TYPE.int32, BSON_TYPE.int64, BSON_TYPE.decimal128],
  ...[BSON_TYPE.document, BSON_TYPE.array],
]);

/** The keys without those that name the row of another one: 7 and 7.0 are the key of one row. */
export function distinctKeys(keys: readonly Bookmark[]): readonly Bookmark[] {
  const distinct: Bookmark[] = [];
  const found = new Map<string, Bookmark[]>();
  for (const key of keys) {
    const text = textOf(key);
    const alike = found.get(text);
    if (alike?.some((other) => isSameKey(key, other))) continue;
    if (alike) alike.push(key);
    else found.set(text, [key]);
    distinct.push(key);
  }
  return distinct;
}

/** A text that is the same for equal keys, and nearly always another one for others. */
function textOf(key: Bookmark): string {
  const isLoose = LOOSE.has(key[4] ?? 0); // the type of a document's first value is behind its length
  return isLoose ? roughly(keyOf(key)._id) : Buffer.from(key).toString('latin1');
}

/** Numbers as doubles. Other values as JSON. */
function roughly(value: unknown): string {
  if (value instanceof Timestamp) return String(value.toBigInt());
  if (value instanceof Int32 || value instanceof Double) return String(value.value);
  if (value instanceof Long || value instanceof Decimal128) return String(Number(value.toString()));
  if (Array.isArray(value)) return `[${value.map(roughly).join()}]`;
  if (value instanceof Map) return `{${[...(value as Map<string, unknown>)].flat().map(roughly).join()}}`;
  return JSON.stringify(value);
}

/** Whether two keys name one row. */
export function isSameKey(a: Bookmark, b: Bookmark): boolean {
  if (Buffer.compare(a, b) === 0 || (isNaNKey(a) && isNaNKey(b))) return true;
  return compareIds(keyOf(a)._id, keyOf(b)._id) === 0;
}

function isNaNKey(key: Bookmark): boolean {
  return LOOSE.has(key[4] ?? 0) && roughly(keyOf(key)._id) === 'NaN';
}
