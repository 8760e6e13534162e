import { Decimal128, Double } from './bson.ts';

/** mantissa * 10^exponent, exactly. Every finite BSON number is one: a double is over a power of 2, and 1/2 is 5/10. */
export interface Decimal {
  readonly mantissa: bigint;
  readonly exponent: number;
}

/** Of a finite Decimal128 (IEEE 754-2008, table 3.6): digits, and the place of its last and its first digit. */
export const DECIMAL_DIGITS = 34;
const LOWEST_EXPONENT = -6176;
const HIGHEST_PLACE = 6145;

/**
 * Parses a JSON number or the text form of a Decimal128: of equal numbers to the same mantissa, without trailing zeros.
 * Returns null for anything else. With `exact`, also returns null for a number that no Decimal128 holds exactly.
 */
export function parseDecimal(text: string, { exact = false } = {}): Decimal | null {
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  if (!parts) return null;
  const [, sign, whole = '', fraction = '', exponent = '0'] = parts;
  const all = whole + fraction;
  const start = firstDigit(all);
  const end = lastDigit(all);
  if (start === all.length) return { mantissa: 0n, exponent: 0 };
  const place = Number(exponent) - fraction.length + all.length - end;
  const digits = end - start;
  const fits = digits <= DECIMAL_DIGITS && place >= LOWEST_EXPONENT && place + digits <= HIGHEST_PLACE;
  if (exact && !fits) return null;
  const mantissa = BigInt(all.slice(start, end));
  return { mantissa: sign ? -mantissa : mantissa, exponent: place };
}

/** The exact value of a finite double: for 0.1 it is 0.1000000000000000055511151231257827... */
export function exactValue(double: number): Decimal {
  let whole = double;
  let halvings = 0;
  for (; !Number.isInteger(whole); whole *= 2) halvings++;
  return { mantissa: BigInt(whole) * 5n ** BigInt(halvings), exponent: -halvings };
}

/** The number that a finite double is shown as: the shortest that parses to it. Throws TypeError when not finite. */
export function shownValue(double: number): Decimal {
  const shown = parseDecimal(String(double));
  if (!shown) throw new TypeError(`${double} is not finite`);
  return shown;
}

/** The double nearest to a number. An infinity when the number is beyond the largest double. */
export function nearestDouble({ mantissa, exponent }: Decimal): number {
  return Number(`${mantissa}e${exponent}`);
}

/** Negative, 0 or positive when the first number is less than, equal to or greater than the second. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  const sign = signOf(a);
  if (sign !== signOf(b) || sign === 0) return sign - signOf(b);
  const distance = placeOf(a) - placeOf(b);
  if (distance !== 0) return sign * distance; // so no power of ten exceeds the longer mantissa
  const exponent = Math.min(a.exponent, b.exponent);
  const difference = scaled(a, exponent) - scaled(b, exponent);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** Converts a number to a Decimal128, which must be able to hold it. */
export function toDecimal128({ mantissa, exponent }: Decimal): Decimal128 {
  return Decimal128.fromString(`${mantissa}E${exponent}`);
}

function digitsOf(mantissa: bigint): number {
  return String(mantissa).length - (mantissa < 0n ? 1 : 0);
}

/** The largest double below the given one. Returns -Infinity for the smallest double. */
export function doubleBelow(double: number): number {
  if (double === 0) return -Number.MIN_VALUE;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, double);
  view.setBigInt64(0, view.getBigInt64(0) + (double > 0 ? -1n : 1n)); // the bits: sign, then integer-ordered magnitude
  return view.getFloat64(0);
}

/** Uses a loop: a regular expression would scan each run of zeros again and again. */
function firstDigit(digits: string): number {
  let at = 0;
  while (digits[at] === '0') at++;
  return at;
}

function lastDigit(digits: string): number {
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  return end;
}

function signOf({ mantissa }: Decimal): number {
  return mantissa < 0n ? -1 : mantissa > 0n ? 1 : 0;
}

function placeOf({ mantissa, exponent }: Decimal): number {
  return digitsOf(mantissa) + exponent;
}

function scaled({ mantissa, exponent }: Decimal, target: number): bigint {
  return mantissa * 10n ** BigInt(exponent - target);
}

/** The lowest and the highest number that rows show with these digits, or with digits of the same value. */
export function numbersShownAs(digits: string): readonly (Double | Decimal128)[] {
  const asked = parseDecimal(digits, { exact: true });
  if (!asked) throw new TypeError(`${digits} is no bound of a range of numbers`);
  const decimal = toDecimal128(asked);
  const double = nearestDouble(asked);
  if (!Number.isFinite(double) || compareDecimals(shownValue(double), asked) !== 0) return [decimal];
  const order = compareDecimals(exactValue(double), asked);
  if (order === 0) return [new Double(double)];
  return order < 0 ? [new Double(double), decimal] : [decimal, new Double(double)];
}
