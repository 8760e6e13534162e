import { Decimal128, Long } from '../store/bson.ts';

const PLAIN = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]\d+)?$/;
const INTEGER = /^-?\d+$/;
/** A double tells apart any two decimals of 15 digits; writers that print doubles exactly need up to 17. */
const DOUBLE_DIGITS = 17;
/** Decimal128 holds 34 digits (IEEE 754-2008, table 3.6). */
const DECIMAL_DIGITS = 34;
const MIN_INT64 = -(2n ** 63n);
const MAX_INT64 = 2n ** 63n - 1n;

/**
 * The value of a CSV cell: a number when it is written as one and no digit is lost by it, else the text itself.
 *
 * Numbers: `12`, `-3`, `0.30`, `1e-05` (a signed exponent, as programs print it), integers beyond 2^53 as Int64. Text:
 * `007`, `+5`, `.5`, `5.`, `1e5` (rather a code than a number), ` 5`, `1,000`, `NaN`, `true`, more than 17 digits with
 * a point, integers beyond int64.
 */
export function cellValue(text: string): number | Long | string {
  const first = text.charCodeAt(0);
  const mayBeNumber = first === 0x2d || (first >= 0x30 && first <= 0x39);
  if (!mayBeNumber || text.length > 40 || !PLAIN.test(text)) return text;
  const value = Number(text);
  if (INTEGER.test(text)) return Number.isSafeInteger(value) ? value : (int64(text) ?? text);
  // Most cells are too short to hold more digits than a double, or an exponent beyond its range.
  if (text.length <= 5) return value;
  const digits = significantDigits(text);
  const exact = digits.length <= DOUBLE_DIGITS && Number.isFinite(value) && (value !== 0 || digits === '');
  return exact ? value : text;
}

/** The finite number a price cell holds, however it is written (`+5`, `007`, `1E3`, with blanks around); else null. */
export function priceOfCell(text: string): number | Long | null {
  const trimmed = text.trim();
  if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(trimmed)) return null;
  const value = Number(trimmed);
  if (!Number.isFinite(value)) return null;
  if (INTEGER.test(trimmed) && !Number.isSafeInteger(value)) return int64(trimmed) ?? value;
  return value;
}

/**
 * The value of a JSON number: integers keep every digit (beyond 2^53 as Int64, beyond that as Decimal128, beyond 34
 * digits as Infinity, which no row may hold); all others are doubles, as every JSON reader takes them.
 */
export function jsonNumber(text: string): number | Long | Decimal128 {
  const value = Number(text);
  if (Number.isSafeInteger(value) || !INTEGER.test(text)) return value;
  if (text.length > DECIMAL_DIGITS + 1) return Infinity;
  const long = int64(text);
  if (long) return long;
  return significantDigits(text).length <= DECIMAL_DIGITS ? Decimal128.fromString(text) : Infinity;
}

function int64(text: string): Long | null {
  const value = BigInt(text);
  return value >= MIN_INT64 && value <= MAX_INT64 ? Long.fromBigInt(value) : null;
}

/** The digits that carry the value: no sign, point or exponent, no zeros in front or at the end of a fraction. */
function significantDigits(text: string): string {
  const [mantissa = ''] = text.replace('-', '').split('e');
  const digits = mantissa.includes('.') ? mantissa.replace(/0+$/, '').replace('.', '') : mantissa;
  return digits.replace(/^0+/, '');
}
