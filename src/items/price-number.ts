import { BSON, Decimal128, Double, Int32, Long } from '../store/bson.ts';
import { DECIMAL_DIGITS, parseDecimal } from '../store/decimal.ts';

const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** What a bound of a price range must be, for error messages. */
export const BOUND = `a number in JSON syntax, of at most ${DECIMAL_DIGITS} digits and from -9.9e+6144 to 9.9e+6144`;

/** Whether a text is a JSON number that a Decimal128 holds exactly. No price in an answer is beyond that. */
export function isBound(text: string): boolean {
  return JSON_NUMBER.test(text) && parseDecimal(text, { exact: true }) !== null;
}

/**
 * The BSON number that a row's JSON shows as exactly this `text`. It has the type of `like` if that type can print
 * `text`. Otherwise digits alone give an integer, a text that JavaScript prints for a double gives a double, and the
 * rest gives a Decimal128. Null when no number prints as `text`.
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

/** Null when the exponent is outside the range of a Decimal128. */
function decimal(text: string): Decimal128 | null {
  try {
    return Decimal128.fromString(text);
  } catch (error) {
    if (BSON.BSONError.isBSONError(error)) return null;
    throw error;
  }
}
