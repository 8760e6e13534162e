import { Decimal128, Long, UUID } from '../store/values/bson.ts';
import { DECIMAL_DIGITS, parseDecimal, shownValue, toDecimal128 } from '../store/values/decimal.ts';
import { JSON_NUMBER, wholeNumberOf } from '../store/values/value-texts.ts';
import { quoted } from '../terminal/text.ts';
import { BadRow } from './row.ts';

const PLAIN = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]\d+)?$/;
const PRICE = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const INTEGER = /^-?\d+$/;
/** A double distinguishes all decimals of 15 digits. */
const SAFE_LENGTH = 15;
const POWERS = Array.from({ length: SAFE_LENGTH }, (_, power) => Number(`1e${power}`));
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;

/**
 * The number whose text is in these bytes, when it is short and written as JSON writes it, without an exponent. NaN for
 * any other text. A whole number below 2^53 divided by a power of ten up to 10^22 is rounded once, as by Number().
 */
export function simpleNumber(bytes: Uint8Array, from: number, to: number): number {
  const length = to - from;
  if (length < 1 || length > SAFE_LENGTH) return NaN;
  const isNegative = bytes[from] === MINUS;
  const first = isNegative ? from + 1 : from;
  if (bytes[first] === ZERO && first + 1 < to && bytes[first + 1] !== POINT) return NaN;
  let value = 0;
  let decimals = -1;
  for (let at = first; at < to; at++) {
    const byte = bytes[at] ?? 0;
    if (byte >= ZERO && byte <= NINE) value = value * 10 + byte - ZERO;
    else if (byte === POINT && decimals < 0 && at > first) decimals = to - at - 1;
    else return NaN;
  }
  if (decimals === 0 || first === to) return NaN;
  if (decimals > 0) value /= POWERS[decimals] ?? NaN;
  return isNegative ? -value : value;
}

/** The UUID of a text, whose hyphens may be missing. null for any other text. */
export function anyUuidOf(text: string): UUID | null {
  return /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(text) ? new UUID(text) : null;
}

/**
 * The number of a CSV cell in a column without a declared kind. null when the cell is text: when it has not the form of a
 * number (`1e5` is probably a code, `1e-05` and `1.00E+05` are what programs print), or a digit would be lost.
 */
export function numberOfCell(text: string): number | Long | Decimal128 | null {
  const exact = PLAIN.test(text) ? exactNumber(text) : null;
  if (!(exact instanceof Decimal128) || INTEGER.test(text)) return exact;
  const double = Number(text);
  return !Number.isFinite(double) || double === 0 ? null : exact;
}

/** Why a CSV cell is no number: see numberOfCell. */
export function whyNoNumber(text: string): string {
  if (!JSON_NUMBER.test(text)) return 'is not a number as JSON writes it';
  if (!PLAIN.test(text)) return 'may be a code: its exponent has no sign';
  return exactNumber(text) === null
    ? `has more digits than a number keeps (a Decimal128 has ${DECIMAL_DIGITS})`
    : 'is out of the range of a double';
}

/** Why a CSV cell is no integer that may be a key. */
export function whyNoInteger(text: string): string {
  return INTEGER.test(text) && numberOfCell(text) !== null ? 'is beyond Int64' : 'is not an integer';
}

/** The finite number of a text (see plainNumber), or null. Throws BadRow when no BSON number has all its digits. */
export function numberOf(text: string): ReturnType<typeof jsonNumber> | null {
  const number = plainNumber(text);
  return number === null || !Number.isFinite(Number(number)) ? null : jsonNumber(number);
}

/** The same as a Decimal128 with its trailing zeros. */
export function decimalOf(text: string): Decimal128 | null {
  const number = plainNumber(text);
  return number === null ? null : (exactDecimal(number) ?? tooManyDigits(text));
}

/** A number in any notation: ` +5`, `.5` and `5.` become `5`, `0.5` and `5`. null when the text is no number. */
function plainNumber(text: string): string | null {
  const trimmed = text.trim();
  if (!PRICE.test(trimmed)) return null;
  return trimmed
    .replace(/^\+/, '')
    .replace(/^-?(?=\.)/, '$&0')
    .replace(/\.(?!\d)/, '');
}

/**
 * The value of a JSON number with all its digits. Integers beyond 2^53 become Int64, and larger ones Decimal128. Other
 * numbers become doubles, or Decimal128 when they have more digits than a double keeps. Throws BadRow for a number with a
 * fraction or an exponent that is larger than any double, and when no BSON number has all the digits.
 */
export function jsonNumber(text: string): number | Long | Decimal128 {
  if (!INTEGER.test(text) && !Number.isFinite(Number(text)))
    throw new BadRow('a number is too large to be stored');
  return exactNumber(text) ?? tooManyDigits(text);
}

/** The value of a number as JSON writes it. null when no BSON number has all its digits. */
function exactNumber(text: string): number | Long | Decimal128 | null {
  const value = Number(text);
  const isInteger = INTEGER.test(text);
  if (isInteger ? Number.isSafeInteger(value) : keepsDigits(text, value)) return value;
  const whole = isInteger ? wholeNumberOf(text, 64) : null;
  return whole === null ? exactDecimal(text) : Long.fromBigInt(whole);
}

function tooManyDigits(text: string): never {
  throw new BadRow(`the number ${quoted(text)} cannot be stored with all its digits (a Decimal128 has 34)`);
}

/** Whether a double has all digits of the text it was read from, by the shortest form that reads back as the same double. */
function keepsDigits(text: string, value: number): boolean {
  if (String(value) === text) return true;
  if (text.length <= SAFE_LENGTH && !/e/i.test(text)) return true;
  // The shortest form has 17 digits at most, so a text that a Decimal128 cannot hold has others.
  const exact = Number.isFinite(value) ? parseDecimal(text, { exact: true }) : null;
  if (!exact) return false;
  const shown = shownValue(value);
  return exact.mantissa === shown.mantissa && exact.exponent === shown.exponent;
}

/** A decimal number with all its digits, and with its trailing zeros when there is room for them. null: it has too many. */
function exactDecimal(text: string): Decimal128 | null {
  const exact = parseDecimal(text, { exact: true });
  if (!exact) return null;
  const isShort = text.replace(/[eE].*|\D/g, '').length <= DECIMAL_DIGITS;
  return isShort ? Decimal128.fromString(text) : toDecimal128(exact);
}
