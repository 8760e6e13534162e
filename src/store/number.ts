import { Decimal128, Double, Int32, Long, MinKey, Timestamp } from './bson.ts';
import { compareDecimals, exactValue, parseDecimal, type Decimal } from './decimal.ts';

/** Where a value stands among numbers in BSON's order: these are compared first, and finite ones among each other. */
const STAND = { below: 0, nan: 1, minusInfinity: 2, finite: 3, infinity: 4, above: 5 } as const;

/**
 * Negative, 0 or positive, as a BSON value (Int32, Long, Double, Decimal128, ...; or a JavaScript number) is below, equal
 * to or above another one, exactly. Values that are no numbers are only told from numbers: below or above them all.
 */
export function compareNumbers(a: unknown, b: unknown): number {
  const [left, right] = [exactly(a), exactly(b)];
  if (!left || !right) return standOf(a, left) - standOf(b, right);
  return compareDecimals(left, right);
}

/** Whether both are numbers and the same one to the server, whatever their types. */
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

/** A finite number's exact value; null for everything else. */
function exactly(value: unknown): Decimal | null {
  if (value instanceof Int32) return exactValue(value.value);
  if (value instanceof Timestamp) return null; // a Long to JavaScript, and no number
  if (value instanceof Long) return parseDecimal(value.toString());
  if (value instanceof Decimal128) return parseDecimal(value.toString());
  const double = value instanceof Double ? value.value : value;
  return typeof double === 'number' && Number.isFinite(double) ? exactValue(double) : null;
}
