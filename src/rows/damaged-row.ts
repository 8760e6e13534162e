import type { Batch } from '../store/batch.ts';
import { bookmarkOf, KEY } from '../store/bookmark.ts';
import { documentAt, endOfDocument } from '../store/bson-array.ts';
import { reasonOf } from '../error-reason.ts';
import { keyToJson, rowToJson } from './row-json.ts';
import type { RowEncoder } from './rows.ts';

const CHUNK_BYTES = 64 * 1024;

/**
 * Runs work that writes the rows of a batch. When it throws because a row cannot be decoded, the error names that row by
 * its id, so that an operator finds it.
 */
export function orDamaged<T>(batch: Batch, work: () => T): T {
  try {
    return work();
  } catch (error) {
    let fault = error;
    faultOf(() => (fault = damagedRow(batch, error))); // a batch whose rows cannot even be separated keeps its error
    throw fault;
  }
}

function damagedRow(batch: Batch, error: unknown): unknown {
  const rows = batch.slot.bytes(batch.start + batch.length).subarray(batch.start);
  for (let at = 0; at < rows.length;) {
    const begin = documentAt(rows, at);
    at = endOfDocument(rows, begin);
    const row = rows.slice(begin, at);
    if (faultOf(() => rowToJson(row)) !== null)
      return new Error(`${reasonOf(error)}. The row ${idOf(row)} cannot be decoded`, { cause: error });
  }
  return error;
}

/** The id of a row as JSON. The rest of the row is not decoded. */
function idOf(row: Uint8Array): string {
  let id = '';
  const fault = faultOf(() => (id = keyToJson(bookmarkOf(row, { sort: KEY }))));
  return fault === null ? id : 'whose id cannot be decoded either';
}

/** Throws as orDamaged does when a row of a batch cannot be written. Closes the encoder, which is for this alone. */
export function assertSound(encoder: RowEncoder, batch: Batch): void {
  const chunks = encoder.encode(batch, CHUNK_BYTES)[Symbol.iterator]();
  try {
    while (chunks.next().done !== true) continue;
  } finally {
    encoder.close();
  }
}

/** What work throws. Null: nothing. */
function faultOf(work: () => unknown): { readonly thrown: unknown } | null {
  try {
    work();
    return null;
  } catch (thrown) {
    return { thrown };
  }
}
