import { Decimal128, Double, Int32, Long, MinKey, Timestamp } from './bson.ts';
import { compareDecimals, exactValue, parseDecimal, type Decimal } from './decimal.ts';

/**
 * Where a value stands relative to numbers in BSON's order. Values are compared by this first, finite ones then by
 * value.
 */
const STAND = { below: 0, nan: 1, minusInfinity: 2, finite: 3, infinity: 4, above: 5 } as const;

/**
 * Returns a negative number, 0 or a positive number when BSON value `a` (Int32, Long, Double, Decimal128, ... or a
 * JavaScript number) is exactly less than, equal to or greater than `b`. Values that are not numbers are only told
 * from numbers: they are below or above all of them.
 */
export function compareNumbers(a: unknown, b: unknown): number {
  const [left, right] = [exactly(a), exactly(b)];
  if (!left || !right) return standOf(a, left) - standOf(b, right);
  return compareDecimals(left, right);
}

/** Whether both are numbers that the server considers equal, whatever their types. */
export function isSameNumber(a: unknown, b: unknown): boolean {
  return isNumber(a) && isNumber(b) && compareNumbers(a, b) === 0;
}

function isNumber(value: unknown): boolean {
  const stand = standOf(value, exactly(value));
  return stand > STAND.below && stand < STAND.above;
}

function standOf(value: unknown, exact: Decimal | null): number {
  if (exact) return STAND.finite;
  if (value === null || value === undefined || value instanceof MinKey) return STAND.below;
  const number = value instanceof Double || value instanceof Decimal128 ? Number(value.toString()) : value;
  if (typeof number !== 'number') return STAND.above;
  if (Number.isNaN(number)) return STAND.nan;
  return number < 0 ? STAND.minusInfinity : STAND.infinity;
}

/** The exact value of a finite number. Null for everything else. */
function exactly(value: unknown): Decimal | null {
  if (value instanceof Int32) return exactValue(value.value);
  if (value instanceof Timestamp) return null; // a subclass of Long, but not a number
  if (value instanceof Long) return parseDecimal(value.toString());
  if (value instanceof Decimal128) return parseDecimal(value.toString());
  const double = value instanceof Double ? value.value : value;
  return typeof double === 'number' && Number.isFinite(double) ? exactValue(double) : null;
}
