import { Decimal128, Int32, Long, ObjectId, UUID } from './bson.ts';
import { parseDecimal } from './decimal.ts';

/** A number as JSON writes it. */
export const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The whole number of a text of digits, which may begin with zeros. null: it is none, or has more bits. */
export function wholeNumberOf(text: string, bits: 32 | 64): bigint | null {
  if (!/^-?0*\d{1,19}$/.test(text)) return null;
  const value = BigInt(text);
  return value === BigInt.asIntN(bits, value) ? value : null;
}

/** The Int32 or Int64 that is shown as a text. null: none is. */
export function integerOf(text: string): Int32 | Long | null {
  const value = /^(?:0|-?[1-9]\d{0,18})$/.test(text) ? wholeNumberOf(text, 64) : null;
  if (value === null) return null;
  return value === BigInt.asIntN(32, value) ? new Int32(Number(value)) : Long.fromBigInt(value);
}

/** The Decimal128 of a JSON number. null: the text is none, or has more digits. */
export function decimalOf(text: string): Decimal128 | null {
  return JSON_NUMBER.test(text) && parseDecimal(text, { exact: true }) ? Decimal128.fromString(text) : null;
}

/** The ObjectId of 24 hexadecimal digits. null for any other text. */
export function objectIdOf(text: string): ObjectId | null {
  return /^[0-9a-f]{24}$/i.test(text) ? new ObjectId(text) : null;
}

/** The UUID that is shown as a text. null for any other text. */
export function uuidOf(text: string): UUID | null {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text) ? new UUID(text) : null;
}
