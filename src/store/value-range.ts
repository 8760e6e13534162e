import type { NumberRange } from './number-range.ts';

/**
 * Values of one type bracket between bounds: all numbers, all strings, all dates, ... Rows without the value, and rows
 * whose value is of another bracket, are left out. NaN is in no range.
 */
export interface ValueRange {
  /** The BSON type that stands for its bracket: numbers 0x10 (int32), strings 0x02, dates 0x09, ... */
  readonly bracket: number;
  readonly low?: ValueBound;
  readonly high?: ValueBound;
}

/** A bound of a range. Its value is of the range's bracket, as a BSON class or a JavaScript value. */
export interface ValueBound {
  readonly value: unknown;
  readonly isInclusive: boolean;
}

/** Tells a range of values from a range of shown numbers (the prices of items). */
export function isValueRange(range: NumberRange | ValueRange): range is ValueRange {
  return 'bracket' in range;
}

/** A range that is one of shown numbers, for code that knows no other. Throws TypeError for another one. */
export function asNumberRange(range: NumberRange | ValueRange | undefined): NumberRange | undefined {
  if (range && isValueRange(range)) throw new TypeError('this code reads ranges of shown numbers only');
  return range;
}
