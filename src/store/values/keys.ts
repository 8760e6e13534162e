import type { Decimal128 } from './bson.ts';
import { BSON_RANK, BSON_TYPE, doubleAt, int32At } from './bson-types.ts';
import {
  compareDecimals,
  doubleBelow,
  exactValue,
  nearestDouble,
  parseDecimal,
  type Decimal,
} from './decimal.ts';

/**
 * Keys: byte strings that sort like the BSON values they stand for. A store that knows only bytes can thus order items
 * as MongoDB does. A key is the rank of the value's type, then the value. order.ts has the other types:
 *
 * | value | rank | bytes |
 * |---|---|---|
 * | number that is a double | 10 | 8: the double, made sortable |
 * | other int64 or Decimal128 | 10 | 8: the highest double below it; FE; 2: place of the first digit; 17: digits |
 * | string | 15 | UTF-8, each NUL followed by FF; closed by two NUL |
 *
 * Ranks are those of BSON_RANK. NaN is below all numbers: its double is eight zeros.
 *
 * Joined keys are ordered by the first key, then by the second. No key is a prefix of another, with one exception: the
 * key of a number that is no double begins with the key of the double below it. A key is followed by a rank, and all
 * ranks are below FE, so that number comes after everything with the double's own key.
 */
export type Key = Uint8Array;

/** A BSON value in place: its type byte and its bytes, as in BSON (bsonspec.org). */
export interface Value {
  readonly type: number;
  readonly bytes: Uint8Array;
}

/** Below and above every key and everything that begins with a joined key: no rank is 0 or 255. */
export const LOWEST: Key = Uint8Array.of(0);
export const HIGHEST: Key = Uint8Array.of(255);

/** The key of a number that is no double continues with this byte, by DECIMAL_KEY_BYTES bytes in all. */
const DECIMAL_MARK = 0xfe;
const DECIMAL_KEY_BYTES = 20;
/** Appended to a number's key: above that key followed by any rank, below the key of any higher number. */
export const ABOVE_IDS: Key = Uint8Array.of(0xfd);

const EIGHT = new DataView(new ArrayBuffer(8));

export function numberKey(double: number): Key {
  const key = new Uint8Array(9);
  key[0] = BSON_RANK.number;
  if (Number.isNaN(double)) return key;
  EIGHT.setFloat64(0, double + 0); // + 0 turns -0 into 0
  // IEEE 754 doubles are ordered like sign-and-magnitude integers. Convert them to unsigned integers.
  const isNegative = EIGHT.getInt8(0) < 0;
  const turned = isNegative ? 0xff : 0;
  key[1] = EIGHT.getUint8(0) ^ (isNegative ? 0xff : 0x80);
  for (let n = 1; n < 8; n++) key[1 + n] = EIGHT.getUint8(n) ^ turned;
  return key;
}

export function keyOfNumber(value: Value): Key {
  const nearest = numberOf(value);
  if (value.type !== BSON_TYPE.int64 || Number.isSafeInteger(nearest)) return numberKey(nearest);
  // Beyond 2^53 several int64 values share one nearest double.
  const mantissa = new DataView(value.bytes.buffer, value.bytes.byteOffset, 8).getBigInt64(0, true);
  return keyNear(nearest, Number(BigInt(nearest) - mantissa), { mantissa, exponent: 0 });
}

/** The key of a Decimal128. It equals the key of another number of the same value. */
export function decimalKey(value: Decimal128): Key {
  const text = value.toString();
  const decimal = parseDecimal(text);
  if (!decimal) return numberKey(Number(text)); // NaN and the infinities
  const nearest = nearestDouble(decimal);
  const order = Number.isFinite(nearest) ? compareDecimals(exactValue(nearest), decimal) : nearest;
  return keyNear(nearest, order, decimal);
}

/** The key of a number by the double nearest to it, and by how that compares with it. */
function keyNear(nearest: number, order: number, decimal: Decimal): Key {
  if (order === 0) return numberKey(nearest);
  return joinKeys(numberKey(order > 0 ? doubleBelow(nearest) : nearest), digitKey(decimal));
}

/** The place of the first digit, and the digits, two per byte. Below 0 all bits are inverted, so that they sort. */
function digitKey({ mantissa, exponent }: Decimal): Key {
  const key = new Uint8Array(DECIMAL_KEY_BYTES);
  key[0] = DECIMAL_MARK;
  const digits = String(mantissa < 0n ? -mantissa : mantissa);
  new DataView(key.buffer).setUint16(1, 0x8000 + digits.length + exponent);
  for (let at = 0; at < digits.length; at++) {
    const digit = digits.charCodeAt(at) - 0x30;
    const byte = 3 + (at >> 1);
    key[byte] = (key[byte] ?? 0) | (at % 2 === 0 ? digit << 4 : digit);
  }
  if (mantissa < 0n) for (let at = 1; at < key.length; at++) key[at] = ~(key[at] ?? 0);
  return key;
}

/** The key of a string given as UTF-8. */
export function stringKey(utf8: Uint8Array): Key {
  let nuls = 0;
  for (const byte of utf8) if (byte === 0) nuls++;
  const key = new Uint8Array(1 + utf8.length + nuls + 2); // a new array already has the two closing NULs
  key[0] = BSON_RANK.string;
  if (nuls === 0) {
    key.set(utf8, 1);
    return key;
  }
  let at = 1;
  for (const byte of utf8) {
    key[at++] = byte;
    if (byte === 0) key[at++] = 255;
  }
  return key;
}

/** The value of an int32, a double or an int64, as the nearest double. */
export function numberOf({ type, bytes }: Value): number {
  if (type === BSON_TYPE.int32) return int32At(bytes, 0);
  if (type === BSON_TYPE.double) return doubleAt(bytes, 0);
  return Number(new DataView(bytes.buffer, bytes.byteOffset, bytes.length).getBigInt64(0, true));
}

/** Concatenates keys. The result is ordered by the first, then by the second, and so on. */
export function joinKeys(...keys: readonly Key[]): Key {
  const joined = new Uint8Array(keys.reduce((size, key) => size + key.length, 0));
  let at = 0;
  for (const key of keys) {
    joined.set(key, at);
    at += key.length;
  }
  return joined;
}

/** Negative, 0 or positive when the first key is below, equal to or above the second. SQLite compares blobs alike. */
export function compareKeys(a: Key, b: Key): number {
  return Buffer.compare(a, b);
}
