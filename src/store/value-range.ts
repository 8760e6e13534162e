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
