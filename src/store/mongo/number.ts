import { Decimal128, Double, Int32, Long, MinKey } from '../bson.ts';

/** mantissa * 10^exponent. Every finite BSON number is one: a double is a whole number over a power of 2, and 1/2 = 5/10. */
interface Exact {
  readonly mantissa: bigint;
  readonly exponent: number;
}

/** Where a value stands among numbers in BSON's order: these are compared first, and finite ones among each other. */
const STAND = { below: 0, nan: 1, minusInfinity: 2, finite: 3, infinity: 4, above: 5 } as const;

/**
 * Negative, 0 or positive, as a BSON value (Int32, Long, Double, Decimal128, ...; or a JavaScript number) is below, equal
 * to or above another one, exactly. Values that are no numbers are only told from numbers: below or above them all.
 */
export function compareNumbers(a: unknown, b: unknown): number {
  const [left, right] = [exactly(a), exactly(b)];
  if (!left || !right) return standOf(a, left) - standOf(b, right);
  const exponent = Math.min(left.exponent, right.exponent);
  const difference = scaled(left, exponent) - scaled(right, exponent);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** Whether both are numbers and the same one to the server, whatever their types. */
export function isSameNumber(a: unknown, b: unknown): boolean {
  return isNumber(a) && isNumber(b) && compareNumbers(a, b) === 0;
}

function isNumber(value: unknown): boolean {
  const stand = standOf(value, exactly(value));
  return stand > STAND.below && stand < STAND.above;
}

function standOf(value: unknown, exact: Exact | null): number {
  if (exact) return STAND.finite;
  if (value === null || value === undefined || value instanceof MinKey) return STAND.below;
  const number = value instanceof Double || value instanceof Decimal128 ? Number(value.toString()) : value;
  if (typeof number !== 'number') return STAND.above;
  if (Number.isNaN(number)) return STAND.nan;
  return number < 0 ? STAND.minusInfinity : STAND.infinity;
}

/** A finite number's exact value; null for everything else. */
function exactly(value: unknown): Exact | null {
  if (value instanceof Int32) return { mantissa: BigInt(value.value), exponent: 0 };
  if (value instanceof Long) return { mantissa: value.toBigInt(), exponent: 0 };
  if (value instanceof Decimal128) return ofDecimal(value.toString());
  const double = value instanceof Double ? value.value : value;
  return typeof double === 'number' && Number.isFinite(double) ? ofDouble(double) : null;
}

function ofDouble(value: number): Exact {
  let whole = value;
  let halvings = 0;
  for (; !Number.isInteger(whole); whole *= 2) halvings++;
  return { mantissa: BigInt(whole) * 5n ** BigInt(halvings), exponent: -halvings };
}

/** Decimal128's own text: digits with an optional fraction and exponent; Infinity and NaN are not finite. */
function ofDecimal(text: string): Exact | null {
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:E([+-]?\d+))?$/.exec(text);
  if (!parts) return null;
  const [, sign, whole = '', fraction = '', exponent = '0'] = parts;
  const mantissa = BigInt(whole + fraction);
  return { mantissa: sign ? -mantissa : mantissa, exponent: Number(exponent) - fraction.length };
}

function scaled({ mantissa, exponent }: Exact, target: number): bigint {
  return mantissa === 0n ? 0n : mantissa * 10n ** BigInt(exponent - target);
}
