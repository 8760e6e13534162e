import type { Bookmark } from './bookmark.ts';
import type { Slot } from './slots.ts';

/**
 * Batch: rows as a store keeps them, not parsed by anybody: the body of a BSON array, i.e. for each row the byte 0x03,
 * a name that nobody reads, NUL, and the BSON document. It lies in a slot; whoever takes a batch releases it once.
 */
export interface Batch {
  readonly slot: Slot;
  /** Where the rows begin and how many bytes they are, counted from the slot's start. */
  readonly start: number;
  readonly length: number;
  readonly rows: number;
  /** The last row's bookmark; null when `rows` is 0. */
  readonly last: Bookmark | null;
  /** Exact: whether rows stood behind the last one when the batch was read. Never true with 0 rows. */
  readonly more: boolean;
  release(): void;
}

/** The document of a batch of one row, a view of its slot: what stands behind the element's type and name. */
export function documentOf(batch: Batch): Uint8Array {
  const row = batch.slot.bytes(batch.start + batch.length).subarray(batch.start);
  return row.subarray(row.indexOf(0) + 1);
}
