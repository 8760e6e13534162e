import { bookmarkOf, type Bookmark, type Identity, type Ordered, type PointInTime } from './bookmark.ts';
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
  /** For `Plan.since`: the store was not ahead of this time when it was read. Absent where there is but one state of the rows. */
  readonly asOf?: PointInTime;
  /** For `Plan.identity`: the collection that was read, also when it had no rows. Absent where collections have none. */
  readonly identity?: Identity;
  /** For `confirm`: what it was read by, in the store's own words. */
  readonly readBy?: string;
  release(): void;
}

/** What comes of work that a batch is for; when that fails before it owns the batch, the batch is given back. */
export async function orRelease<T>(batch: Batch, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    batch.release();
    throw error;
  }
}

/** The document of a batch of one row, a view of its slot: what stands behind the element's type and name. */
export function documentOf(batch: Batch): Uint8Array {
  const row = batch.slot.bytes(batch.start + batch.length).subarray(batch.start);
  return row.subarray(row.indexOf(0) + 1);
}

/** The documents of a batch, as views of its slot: each valid until the next `take` of anybody, or an await. */
export function* rowsOf(batch: Batch): Generator<Uint8Array, void, undefined> {
  const bytes = batch.slot.bytes(batch.start + batch.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let row = batch.start; row < bytes.length;) {
    const end = endOfRow(bytes, view, row);
    yield bytes.subarray(documentAt(bytes, row), end);
    row = end;
  }
}

/** Some rows of a batch, at most `most`, from the one that begins `at` bytes behind its first. Belongs to the batch. */
export function sliceOf(batch: Batch, at: number, most: number): Batch {
  const { slot, start, length, last } = batch;
  if (at === 0 && batch.rows <= most)
    return { slot, start, length, rows: batch.rows, last, more: batch.more, release };
  const bytes = slot.bytes(start + batch.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let end = start + at;
  let rows = 0;
  for (; rows < most && end < bytes.length; rows++) end = endOfRow(bytes, view, end);
  const more = end < bytes.length || batch.more;
  return { slot, start: start + at, length: end - start - at, rows, last: null, more, release };
}

/** The rows from `at` bytes behind a batch's first on, to the one with which their documents have `bytes`, or the last. Belongs to the batch. */
export function reach(batch: Batch, at: number, bytes: number): Batch & { readonly documentBytes: number } {
  const { slot, start, more } = batch;
  const view = slot.bytes(start + batch.length);
  const numbers = new DataView(view.buffer, view.byteOffset, view.length);
  let end = start + at;
  let [rows, documentBytes] = [0, 0];
  for (; end < view.length && documentBytes < bytes; rows++) {
    const document = documentAt(view, end);
    end = endOfRow(view, numbers, end);
    documentBytes += end - document;
  }
  const length = end - start - at;
  return {
    slot,
    start: start + at,
    length,
    rows,
    last: null,
    more: end < view.length || more,
    release,
    documentBytes,
  };
}

/** The rows of a batch that its first `length` bytes are, which end with a row. Belongs to the batch. */
export function headOf(batch: Batch, length: number): Batch {
  const bytes = batch.slot.bytes(batch.start + length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let rows = 0;
  for (let at = batch.start; at < bytes.length; rows++) at = endOfRow(bytes, view, at);
  return { ...batch, length, rows, last: null, more: length < batch.length || batch.more, release };
}

/** No rows of a batch: nobody has to release it. */
export function noneOf(batch: Batch): Batch {
  return { ...batch, length: 0, rows: 0, last: null, more: true, release };
}

/** The bookmark of a batch's last row, read from the row itself: for a slice, which has none. */
export function lastBookmark(batch: Batch, plan: Ordered): Bookmark {
  const bytes = batch.slot.bytes(batch.start + batch.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let row = batch.start;
  for (let end = row; end < bytes.length; end = endOfRow(bytes, view, end)) row = end;
  return bookmarkOf(bytes.slice(documentAt(bytes, row)), plan);
}

function endOfRow(bytes: Uint8Array, view: DataView, row: number): number {
  const document = documentAt(bytes, row);
  const end = document + (document + 4 <= bytes.length ? view.getInt32(document, true) : 0);
  if (end <= document || end > bytes.length) throw new Error('A row does not end inside its batch');
  return end;
}

function documentAt(bytes: Uint8Array, row: number): number {
  let at = row + 1;
  while (at < bytes.length && bytes[at] !== 0) at++; // a name of a few digits: a call would cost more
  return at + 1;
}

function release(): void {
  // A slice's memory is its batch's.
}
