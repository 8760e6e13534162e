import { Decimal128, Double } from './bson.ts';
import { BSON_TYPE } from './bson-types.ts';
import {
  compareDecimals,
  exactValue,
  nearestDouble,
  parseDecimal,
  shownValue,
  toDecimal128,
} from './decimal.ts';
import type { ValueRange } from './value-range.ts';

/**
 * The finite numbers from one bound to another, both inclusive and in the digits that rows show. A text such as 0.1 is
 * shown for a double and for a decimal, which differ: a range begins at the lower and ends at the higher of the two.
 * Numbers that are shown as null (infinities, NaN) are in no range. TypeError for a text that is no number, or one that no
 * Decimal128 holds exactly.
 */
export function numberRange(low: string | undefined, high: string | undefined): ValueRange {
  const first = low === undefined ? undefined : numbersShownAs(low)[0];
  const last = high === undefined ? undefined : numbersShownAs(high).at(-1);
  return {
    bracket: BSON_TYPE.int32,
    low: first ? { value: first, isInclusive: true } : { value: -Infinity, isInclusive: false },
    high: last ? { value: last, isInclusive: true } : { value: Infinity, isInclusive: false },
  };
}

/** The lowest and the highest number that rows show with these digits, or with digits of the same value. */
export function numbersShownAs(digits: string): readonly (Double | Decimal128)[] {
  const asked = parseDecimal(digits, { exact: true });
  if (!asked) throw new TypeError(`${digits} is no bound of a range of numbers`);
  const [decimal, double] = [toDecimal128(asked), nearestDouble(asked)];
  if (!Number.isFinite(double) || compareDecimals(shownValue(double), asked) !== 0) return [decimal];
  const order = compareDecimals(exactValue(double), asked);
  if (order === 0) return [new Double(double)];
  return order < 0 ? [new Double(double), decimal] : [decimal, new Double(double)];
}
