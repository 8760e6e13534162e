import type { Bookmark, Identity, RowOrder, PointInTime } from './bookmark.ts';
import type { Index } from './indexes.ts';

/**
 * What to read and in which order: the rows with these values, ordered by the value of one path and then by key, both
 * in the same direction. One index has them in this order: the paths of `equals`, then `sort`, then `_id`.
 */
export interface Plan extends RowOrder {
  readonly direction: 1 | -1;
  /**
   * The index, as `Collection.indexes` listed it. Absent: the ascending one of `equals`, `sort` and `_id`, of any name.
   */
  readonly index?: Index;
  /** The values that rows have, in the order of the index. Absent: rows of any values. */
  readonly equals?: readonly Equality[];
  /**
   * Rows have one of several values of a path, which is in none of `equals`. They come value by value: those of each value in
   * the order of the plan. Only `AmongCollection` reads, counts and splits such plans. The stores know them in look-ups.
   */
  readonly among?: AmongValues;
  /** Only rows whose value of `sort` lies between bounds. */
  readonly range?: ValueRange;
  /** No row matches. Only the rows of a part that a key opens are read so (part-rows.ts): the stores do not know it. */
  readonly isEmpty?: true;
  /** Only rows whose id is in this range. Allowed in ascending order of id only. */
  readonly ids?: IdRange;
  /** Every read sees the rows as they were at this point in time. Absent: each read sees the current rows. */
  readonly at?: PointInTime;
  /**
   * Without `at`: each read sees the rows as they were at this time or later. Absent: not earlier than anything this
   * process has seen from the store. A chain sets the time of its first batch (`Batch.asOf`). Its rows need not be
   * newer than that, and a later time could be unknown to another member of a replica set: the read would wait for it,
   * without a primary for as long as an election takes.
   */
  readonly since?: PointInTime;
  /**
   * Every read of the plan sees rows of this collection only. Absent: of the collection that has the name now. A chain
   * sets the identity of its first batch (`Batch.identity`). Its rows therefore never come from two collections, and a
   * dropped collection is never mistaken for one whose rows have ended.
   */
  readonly identity?: Identity;
}

/** A value that the rows of a plan have at a path. */
export interface Equality {
  readonly path: string;
  /** As a BSON class (Int32, Double, ...) or a JavaScript value that BSON writes unchanged. null: also missing. */
  readonly value: unknown;
}

/** Values of a path, at least one. Each is of the form of an equality's. Two may be one place (7 and 7.0). */
export interface AmongValues {
  readonly path: string;
  readonly values: readonly unknown[];
}

/** Ids from `from`, inclusive, to `to`, exclusive, each a bookmark `{_id}` of any id. A missing end is open. */
export interface IdRange {
  readonly from?: Bookmark;
  readonly to?: Bookmark;
}

/** Where a read begins: at the start, after a row (which may have been deleted), or after a number of rows. */
export interface From {
  readonly after?: Bookmark;
  readonly skip?: number;
}

/** The most that a batch may hold. From `bytes` on a store may return fewer rows, but never none, with `more: true`. */
export interface Size {
  readonly rows: number;
  readonly bytes: number;
  /** The read is part of a long chain. Where reads queue, a read that is its client's whole request goes first. */
  readonly patient?: boolean;
}

/** `exact` counts for at most about 2 s. `estimated` costs no more than a few pages, however many rows there are. */
export type CountMode = 'estimated' | 'exact';

export interface Count {
  readonly rows: number;
  /** `atLeast`: counting stopped there. `estimated`: the size of the whole set by the store's metadata. */
  readonly is: 'exact' | 'estimated' | 'atLeast';
}

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
