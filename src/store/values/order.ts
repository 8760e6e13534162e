import { BSON, Decimal128, MaxKey, MinKey, onDemand } from './bson.ts';
import { BSON_TYPE, rankOf } from './bson-types.ts';
import { textOf, type Bookmark } from '../bookmark.ts';
import { compareKeys, decimalKey, joinKeys, keyOfNumber, stringKey, type Key, type Value } from './keys.ts';

/**
 * The order of BSON values in both stores, which is MongoDB's (`bsonWoCompare`): values are compared by their keys, as
 * bytes. A collection with a collation of its own is not served, so texts are in the order of their bytes. keys.ts has
 * the keys of numbers and strings; the other types are here:
 *
 * | value | rank | bytes |
 * |---|---|---|
 * | MinKey | 1 | |
 * | undefined | 2 | |
 * | null, a missing field | 5 | |
 * | document, array | 20, 25 | for each member: rank of the value, name, NUL, key of the value; closed by 0 |
 * | binary | 30 | 4: length; 1: subtype; the bytes |
 * | ObjectId | 35 | 12 |
 * | boolean | 40 | 1 |
 * | date, timestamp | 45, 47 | 8: a date with its sign turned |
 * | regular expression | 50 | pattern, NUL, options, NUL |
 * | DBPointer | 55 | 4: length; the bytes |
 * | code; code with a scope | 60, 65 | as a string; then the scope as a document |
 * | MaxKey | 127 | |
 *
 * Ranks are those of MongoDB's `canonicalizeBSONType`, except that MinKey and undefined have one each above 0, which is
 * below every key.
 */
const END = 0;

/** The key of a missing field, which is the key of null. */
export const NULL_KEY: Key = Uint8Array.of(5);

/** The key of a value. Throws a TypeError for bytes that are not a value of their type. */
export function keyOfAny(value: Value): Key {
  const { type, bytes } = value;
  const rank = rankOf(type);
  switch (type) {
    case BSON_TYPE.double:
    case BSON_TYPE.int32:
    case BSON_TYPE.int64:
      return keyOfNumber(value);
    case BSON_TYPE.decimal128:
      return decimalKey(new Decimal128(bytes));
    case BSON_TYPE.string:
    case BSON_TYPE.symbol:
      return stringKey(bytes.subarray(4, -1));
    case BSON_TYPE.document:
    case BSON_TYPE.array:
      return documentKey(rank, bytes);
    case BSON_TYPE.binary:
      return binaryKey(rank, bytes);
    case BSON_TYPE.date:
      return eightBytes(rank, bytes, 0x80);
    case BSON_TYPE.timestamp:
      return eightBytes(rank, bytes, 0);
    case BSON_TYPE.objectId:
    case BSON_TYPE.boolean:
    case BSON_TYPE.regularExpression: // two C strings
      return begun(rank, bytes);
    case BSON_TYPE.dbPointer:
      return begun(rank, joinKeys(bigEndian(bytes.length), bytes));
    case BSON_TYPE.code:
      return textKey(rank, bytes.subarray(4, -1));
    case BSON_TYPE.scopedCode:
      return scopedCodeKey(rank, bytes);
    default: // MinKey, undefined, null and MaxKey
      return Uint8Array.of(rank);
  }
}

function documentKey(rank: number, bytes: Uint8Array): Key {
  return joinKeys(Uint8Array.of(rank), membersKey(bytes));
}

function membersKey(bytes: Uint8Array): Key {
  const parts: Key[] = [];
  for (const [type, nameAt, nameLength, at, length] of onDemand.parseToElements(bytes)) {
    const key = keyOfAny({ type, bytes: bytes.subarray(at, at + length) });
    parts.push(key.subarray(0, 1), bytes.subarray(nameAt, nameAt + nameLength), Uint8Array.of(END), key);
  }
  return joinKeys(...parts, Uint8Array.of(END));
}

/** The old subtype 2 repeats the length in its bytes; MongoDB compares them as they are. */
function binaryKey(rank: number, bytes: Uint8Array): Key {
  const length = bytes.length - 5;
  return joinKeys(Uint8Array.of(rank), bigEndian(length), bytes.subarray(4));
}

function eightBytes(rank: number, bytes: Uint8Array, turned: number): Key {
  const key = begun(rank, Uint8Array.from(bytes).reverse());
  key[1] = (key[1] ?? 0) ^ turned;
  return key;
}

function scopedCodeKey(rank: number, bytes: Uint8Array): Key {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const scopeAt = 8 + view.getInt32(4, true);
  return joinKeys(textKey(rank, bytes.subarray(8, scopeAt - 1)), membersKey(bytes.subarray(scopeAt)));
}

function textKey(rank: number, utf8: Uint8Array): Key {
  const key = stringKey(utf8);
  key[0] = rank;
  return key;
}

function begun(rank: number, bytes: Uint8Array): Key {
  const key = new Uint8Array(1 + bytes.length);
  key[0] = rank;
  key.set(bytes, 1);
  return key;
}

function bigEndian(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}

/**
 * Negative, 0 or positive when a bookmark is before, at or behind another of the same order, ascending. Numbers of one
 * value are at one place, whatever their types. Throws BSON errors and TypeErrors for other bytes.
 */
export function comparePlaces(a: Bookmark, b: Bookmark): number {
  return compareKeys(keyOfPlace(a), keyOfPlace(b));
}

/** The same of two values, each a BSON class or a JavaScript value that BSON writes unchanged. Undefined is null. */
export function compareValues(a: unknown, b: unknown): number {
  const side = sideOf(a);
  const other = sideOf(b);
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

/** The place of a bookmark as a text, for maps: keys of one row have one text, also 7 and 7.0. */
export function placeTextOf(bookmark: Bookmark): string {
  return textOf(keyOfPlace(bookmark));
}
