import { BSON_TYPE, int32At } from './bson-types.ts';

/**
 * The body of a BSON array of documents, which is what a batch and the reply to a find consist of. For each row: the
 * type byte 0x03, a name that is never read, NUL, and the document, which begins with its size. These functions walk
 * it without allocating, because they run for every row.
 */

/** What precedes a row's document when `beginRow` writes it: the type and an empty name. Bytes. */
export const ROW_HEAD_BYTES = 2;

/** Begins a row at `row`. Returns where its document goes. */
export function beginRow(rows: Uint8Array, row: number): number {
  rows[row] = BSON_TYPE.document;
  rows[row + 1] = 0;
  return row + ROW_HEAD_BYTES;
}

export function documentAt(rows: Uint8Array, row: number): number {
  let at = row + 1;
  while (at < rows.length && rows[at] !== 0) at++; // the name has a few digits: a call would cost more
  return at + 1;
}

/** Where a document ends and the next row begins. Throws DamagedRowsError when that is not inside `rows`. */
export function endOfDocument(rows: Uint8Array, document: number): number {
  const size = int32At(rows, document);
  if (size < SMALLEST_DOCUMENT || document + size > rows.length)
    throw new DamagedRowsError(
      `a row of ${size} bytes begins ${rows.length - document} bytes before the end`,
    );
  return document + size;
}

/** Where the row at `row` ends. Throws as `endOfDocument` does. */
export function endOfRow(rows: Uint8Array, row: number): number {
  return endOfDocument(rows, documentAt(rows, row));
}

/** An empty document: its size (4 bytes) and NUL. */
const SMALLEST_DOCUMENT = 5;

export class DamagedRowsError extends Error {
  override readonly name = 'DamagedRowsError';
}
