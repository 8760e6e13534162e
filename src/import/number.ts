import { Decimal128, Long } from '../store/bson.ts';
import { exactDecimal, keepsDigits, TooManyDigits } from './digits.ts';

const PLAIN = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]\d+)?$/;
const INTEGER = /^-?\d+$/;
const LONGEST_INT64 = '-9223372036854775808'.length;
const MIN_INT64 = -(2n ** 63n);
const MAX_INT64 = 2n ** 63n - 1n;

/**
 * The value of a CSV cell: a number when the text has the form of a number and no digit is lost, otherwise
 * the text.
 *
 * Numbers: `12`, `-3`, `0.30`, `1e-05` (a signed exponent, as programs print it), integers beyond 2^53 as
 * Int64, and fractions with more digits than a double keeps as Decimal128.
 * Text: `007`, `+5`, `.5`, `5.`, `1e5` (probably a code rather than a number), ` 5`, `1,000`, `NaN`, `true`,
 * fractions with more than 34 digits, integers beyond int64, and numbers beyond the exponents of a double.
 */
export function cellValue(text: string): number | Long | Decimal128 | string {
  const first = text.charCodeAt(0);
  const mayBeNumber = first === 0x2d || (first >= 0x30 && first <= 0x39);
  if (!mayBeNumber || text.length > 40 || !PLAIN.test(text)) return text;
  const value = Number(text);
  if (INTEGER.test(text)) return Number.isSafeInteger(value) ? value : (int64(text) ?? text);
  // Most cells are too short to hold more digits than a double, or an exponent beyond its range.
  if (text.length <= 5) return value;
  if (keepsDigits(text, value)) return value;
  const isInRange = Number.isFinite(value) && value !== 0;
  const decimal = isInRange ? exactDecimal(text) : null;
  return decimal instanceof Decimal128 ? decimal : text;
}

/**
 * The finite number in a price cell, in any notation (`+5`, `007`, `1E3`, with blanks around it), with all
 * its digits. null when the cell holds no such number.
 */
export function priceOfCell(text: string): number | Long | Decimal128 | TooManyDigits | null {
  const trimmed = text.trim();
  if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(trimmed)) return null;
  const value = Number(trimmed);
  if (!Number.isFinite(value)) return null;
  if (INTEGER.test(trimmed) && !Number.isSafeInteger(value)) return int64(trimmed) ?? exactDecimal(trimmed);
  return keepsDigits(trimmed, value) ? value : exactDecimal(trimmed);
}

/**
 * The value of a JSON number with all its digits. Integers beyond 2^53 become Int64, and larger ones
 * Decimal128. Other numbers become doubles, or Decimal128 when they have more digits than a double keeps. A
 * number with a fraction or an exponent that is larger than any double becomes Infinity.
 */
export function jsonNumber(text: string): number | Long | Decimal128 | TooManyDigits {
  const value = Number(text);
  if (!INTEGER.test(text))
    return !Number.isFinite(value) || keepsDigits(text, value) ? value : exactDecimal(text);
  if (Number.isSafeInteger(value)) return value;
  return int64(text) ?? exactDecimal(text);
}

function int64(text: string): Long | null {
  if (text.length > LONGEST_INT64) return null;
  const value = BigInt(text);
  return value >= MIN_INT64 && value <= MAX_INT64 ? Long.fromBigInt(value) : null;
}
