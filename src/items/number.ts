import { BSON, Decimal128, Double, Int32, Long } from '../store/bson.ts';

const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
/** IEEE 754-2008, table 3.6; longer numbers no row can show. */
const DECIMAL_DIGITS = 34;

/**
 * The BSON number that a row's JSON shows as `text`, exactly: of the type of `like` where that can print so, else an
 * integer for digits alone, a double for what JavaScript prints so, and a Decimal128 for the rest. Null when no number
 * prints so.
 */
export function parseNumber(text: string, like?: unknown): Int32 | Long | Double | Decimal128 | null {
  if (!JSON_NUMBER.test(text) || text.replace(/[eE].*/, '').replace(/\D/g, '').length > DECIMAL_DIGITS)
    return null;
  const double = Number(text);
  const isDouble = String(double) === text;
  if (like instanceof Decimal128) return decimal(text);
  if (like instanceof Double && isDouble) return new Double(double);
  return integer(text) ?? (isDouble ? new Double(double) : decimal(text));
}

function integer(text: string): Int32 | Long | null {
  if (!/^-?\d+$/.test(text)) return null;
  const value = BigInt(text);
  if (value !== BigInt.asIntN(64, value)) return null;
  return value === BigInt.asIntN(32, value) ? new Int32(Number(value)) : Long.fromBigInt(value);
}

/** Null when the exponent is beyond what a Decimal128 has. */
function decimal(text: string): Decimal128 | null {
  try {
    return Decimal128.fromString(text);
  } catch (error) {
    if (BSON.BSONError.isBSONError(error)) return null;
    throw error;
  }
}
