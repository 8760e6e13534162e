import { bookmarkOf, type Bookmark, type Identity, type RowOrder, type PointInTime } from './bookmark.ts';
import { beginRow, documentAt, endOfDocument, endOfRow, ROW_HEAD_BYTES } from './values/bson-array.ts';
import type { Slot, Slots } from './turns/slots.ts';

/** Rows as the body of a BSON array (bson-array.ts), unparsed. The function that takes a batch must release it once. */
export interface Batch {
  readonly slot: Slot;
  /** Byte offset of the first row from the slot's start, and the length of all rows in bytes. */
  readonly start: number;
  readonly length: number;
  readonly rows: number;
  /** The last row's bookmark. Null when `rows` is 0. */
  readonly last: Bookmark | null;
  /** Whether rows followed the last one when the batch was read. Always exact. Never true with 0 rows. */
  readonly more: boolean;
  /** For `Plan.since`: the store was not ahead of this time. Absent where rows have one state only. */
  readonly asOf?: PointInTime;
  /** For `Plan.identity`, also when there were no rows. Absent where collections have no identity. */
  readonly identity?: Identity;
  /** Whether other streams wait for memory. A batch that its client does not take is then to be released soon. */
  isAwaited?(): boolean;
  release(): void;
}

export interface ReadBatch extends Batch {
  /**
   * Resolves when what the batch was read by (such as an index) is proved to hold every row exactly once, also now, after
   * the batch was read. Only then is the batch proved complete. Rejects as `read` does. (MongoDB: the index was not
   * replaced by a partial index of the same name, no row has an array in an indexed field, and none lies where bounds end.)
   */
  confirm(signal: AbortSignal): Promise<void>;
}

/** Documents, at least one, as a batch in a slot of its own. */
export function batchOf(slots: Slots, documents: readonly Uint8Array[], order: RowOrder): Batch {
  const last = bookmarkOf(documents.at(-1) ?? new Uint8Array(), order);
  const { slot, length } = slotOf(slots, documents);
  return { slot, start: 0, length, rows: documents.length, last, more: false, release: () => slot.release() };
}

/** A slot that begins with documents as rows, and the length of these in bytes. */
export function slotOf(slots: Slots, documents: readonly Uint8Array[]) {
  const length = documents.reduce((bytes, document) => bytes + ROW_HEAD_BYTES + document.length, 0);
  const slot = slots.take(length);
  const bytes = slot.bytes(length);
  let at = 0;
  for (const document of documents) {
    at = beginRow(bytes, at);
    bytes.set(document, at);
    at += document.length;
  }
  return { slot, length };
}

/** Runs `work`, which takes over the batch. When it fails before that, the batch is released. */
export async function orRelease<T>(batch: Batch, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    batch.release();
    throw error;
  }
}

/** The document of a batch of one row, as a view of its slot. It follows the element's type and name. */
export function documentOf(batch: Batch): Uint8Array {
  const row = batch.slot.bytes(batch.start + batch.length).subarray(batch.start);
  return row.subarray(documentAt(row, 0));
}

/** The documents of a batch, as views of its slot. Each is valid until an await or the next `take` by any code. */
export function* rowsOf(batch: Batch): Generator<Uint8Array, void, undefined> {
  const bytes = batch.slot.bytes(batch.start + batch.length);
  for (let row = batch.start; row < bytes.length;) {
    const document = documentAt(bytes, row);
    row = endOfDocument(bytes, document);
    yield bytes.subarray(document, row);
  }
}

/** At most `most` rows, from the one `at` bytes after the first. The slice shares the batch's memory. */
export function sliceOf(batch: Batch, at: number, most: number): Batch {
  const { slot, start, length, last } = batch;
  if (at === 0 && batch.rows <= most)
    return { slot, start, length, rows: batch.rows, last, more: batch.more, release };
  const bytes = slot.bytes(start + batch.length);
  let end = start + at;
  let rows = 0;
  for (; rows < most && end < bytes.length; rows++) end = endOfRow(bytes, end);
  const more = end < bytes.length || batch.more;
  return { slot, start: start + at, length: end - start - at, rows, last: null, more, release };
}

/** The rows in the first `length` bytes, which must end with a row. The slice shares the batch's memory. */
export function headOf(batch: Batch, length: number): Batch {
  const bytes = batch.slot.bytes(batch.start + length);
  let rows = 0;
  for (let at = batch.start; at < bytes.length; rows++) at = endOfRow(bytes, at);
  return { ...batch, length, rows, last: null, more: length < batch.length || batch.more, release };
}

/** The rows of a batch up to the last one that passes, itself included; null when none does. It is released in the batch's place. */
export function headEndingWith(batch: Batch, passes: (row: Uint8Array) => boolean): Batch | null {
  const bytes = batch.slot.bytes(batch.start + batch.length);
  let length = 0;
  for (let row = batch.start; row < bytes.length;) {
    const document = documentAt(bytes, row);
    row = endOfDocument(bytes, document);
    if (passes(bytes.subarray(document, row))) length = row - batch.start;
  }
  return length === 0 ? null : { ...headOf(batch, length), release: () => batch.release() };
}

/** A slice of a batch without rows. It need not be released. */
export function noneOf(batch: Batch): Batch {
  return { ...batch, length: 0, rows: 0, last: null, more: true, release };
}

/** The bookmark of a batch's last row, computed from the row itself. For slices, which have no `last`. */
export function lastBookmark(batch: Batch, plan: RowOrder): Bookmark {
  const bytes = batch.slot.bytes(batch.start + batch.length);
  let row = batch.start;
  for (let end = row; end < bytes.length; end = endOfRow(bytes, end)) row = end;
  return bookmarkOf(bytes.slice(documentAt(bytes, row)), plan);
}

function release(): void {
  // A slice's memory belongs to its batch.
}
