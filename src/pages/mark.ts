import { collectionReplaced } from '../errors.ts';
import type { Identity } from '../store/bookmark.ts';
import { crc32 } from '../stream/crc32.ts';

/** Bytes of a mark in a token. */
export const MARK_BYTES = 4;

/**
 * A short form of a collection's identity, which cursors and parts carry. It lets a stream notice that what it is to
 * continue began in another collection. Two collections have the same mark once in 2^32 times.
 */
export function markOf(identity: Identity): number {
  return crc32(identity);
}

/** The mark as a token carries it. */
export function markBytes(identity: Identity): Buffer {
  const bytes = Buffer.allocUnsafe(MARK_BYTES);
  bytes.writeUInt32LE(markOf(identity));
  return bytes;
}

/**
 * AppError `collection-replaced` when a mark is of another collection. A token without a mark (undefined) is of
 * a store whose collections have no identity. It fits any collection.
 */
export function checkMark(mark: number | undefined, identity: Identity | undefined): void {
  if (mark === undefined || (identity !== undefined && mark === markOf(identity))) return;
  throw collectionReplaced();
}
