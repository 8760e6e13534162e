import type { Decimal128 } from './bson.ts';
import {
  compareDecimals,
  exactValue,
  isDecimal128,
  nearestDouble,
  parseDecimal,
  shownValue,
  toDecimal128,
  type Decimal,
} from './decimal.ts';

/**
 * A range is about numbers as they are shown, but an index is ordered by their exact values. The two differ for
 * doubles only: 19.99 as a double is shown as 19.99 and is 19.98999999999999843..., while as a Decimal128 it is 19.99.
 * So a range is nearly always one stretch of the index. Where a bound falls between a double and the value it is shown
 * as, that double's own value is a separate stretch, before or after the main one. A Decimal128 may have exactly the
 * same value and is then shown differently. In that case only the doubles, or only the other types, of that one value
 * belong to the range.
 */
export interface Stretch {
  readonly from: End;
  readonly to: End;
  /**
   * Only rows whose number is a double, or only rows whose number is not. `from` and `to` are then one value, both
   * inclusive.
   */
  readonly only?: 'doubles' | 'others';
}

/** An end of a stretch, by exact value. The value is a double (or an infinity), or a number that no double holds. */
export interface End {
  readonly value: number | Decimal128;
  readonly inclusive: boolean;
}

/**
 * Bounds of numbers as they are shown, inclusive. Each is written like a JSON number, in digits that a Decimal128
 * holds exactly.
 */
export interface NumberRange {
  readonly low?: string;
  readonly high?: string;
}

/**
 * A bound, the double nearest to it, that double's exact value (null: it is infinite) and the value it is shown as.
 */
interface Bound {
  readonly asked: Decimal;
  readonly nearest: number;
  readonly exact: Decimal | null;
  readonly shown: Decimal | null;
}

const OPEN_BELOW: End = { value: -Infinity, inclusive: false };
const OPEN_ABOVE: End = { value: Infinity, inclusive: false };

/**
 * The stretches of an index in order of a number that together hold the rows whose shown number is in the range. They
 * are ascending and disjoint. Values shown as null (infinities, NaN, missing) are in no range. Throws TypeError when a
 * bound is not a number.
 */
export function stretchesOf(range: NumberRange): readonly Stretch[] {
  const low = boundOf(range.low);
  const high = boundOf(range.high);
  const points = pointsOf([low, high]);
  const stretches: Stretch[] = [];
  let begun: End | null = low ? null : OPEN_BELOW;
  let end: End = OPEN_BELOW;
  for (const [n, point] of points.entries()) {
    const at = endAt(point, true);
    const kind = kindAt(point, low, high);
    const goesOn =
      n + 1 < points.length ? isWithin(point, low, high) && isWithin(points[n + 1], low, high) : !high;
    if (kind === 'all') {
      begun ??= at;
      end = at;
    }
    if (kind !== 'all' && begun) {
      stretches.push({ from: begun, to: { ...at, inclusive: false } });
      begun = null;
    }
    if (kind === 'doubles' || kind === 'others') stretches.push({ from: at, to: at, only: kind });
    if (goesOn) begun ??= { ...at, inclusive: false };
    else if (begun) {
      stretches.push({ from: begun, to: end });
      begun = null;
    }
  }
  if (begun) stretches.push({ from: begun, to: OPEN_ABOVE });
  return stretches;
}

function boundOf(digits: string | undefined): Bound | null {
  if (digits === undefined) return null;
  const asked = parseDecimal(digits, { exact: true });
  if (!asked) throw new TypeError(`${digits} is no bound of a range of numbers`);
  const nearest = nearestDouble(asked);
  const isFinite = Number.isFinite(nearest);
  return {
    asked,
    nearest,
    exact: isFinite ? exactValue(nearest) : null,
    shown: isFinite ? shownValue(nearest) : null,
  };
}

/** The values at which membership in the range may change, ascending and distinct. */
function pointsOf(bounds: readonly (Bound | null)[]): Decimal[] {
  const points = bounds.flatMap((bound) =>
    bound ? [bound.asked, ...(bound.exact ? [bound.exact] : [])] : [],
  );
  const sorted = points.sort(compareDecimals);
  return sorted.filter((point, n) => n === 0 || compareDecimals(point, sorted[n - 1] ?? point) !== 0);
}

/** Which numbers of exactly this value are in the range. */
function kindAt(
  point: Decimal,
  low: Bound | null,
  high: Bound | null,
): 'all' | 'doubles' | 'others' | 'none' {
  const others = isDecimal128(point) && isWithin(point, low, high);
  const double = nearestDouble(point);
  const isDouble = Number.isFinite(double) && compareDecimals(exactValue(double), point) === 0;
  const doubles = isDouble && isShownWithin(double, low, high);
  if (others && (doubles || !isDouble)) return 'all';
  if (others) return 'others';
  if (!doubles) return 'none';
  return isDecimal128(point) ? 'doubles' : 'all';
}

/** Whether a number whose shown value is its exact value is in the range. */
function isWithin(point: Decimal | undefined, low: Bound | null, high: Bound | null): boolean {
  if (!point) return false;
  return (
    (!low || compareDecimals(point, low.asked) >= 0) && (!high || compareDecimals(point, high.asked) <= 0)
  );
}

/** Whether the shown value of a double is in the range. */
function isShownWithin(double: number, low: Bound | null, high: Bound | null): boolean {
  const shown = shownValue(double);
  return isWithin(shown, low, high);
}

function endAt(point: Decimal, inclusive: boolean): End {
  const double = nearestDouble(point);
  const isDouble = Number.isFinite(double) && compareDecimals(exactValue(double), point) === 0;
  return { value: isDouble ? double : toDecimal128(point), inclusive };
}
