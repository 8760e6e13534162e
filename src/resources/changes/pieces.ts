import type { Batch } from '../../store/batch.ts';
import { bookmarkOf, KEY, type Bookmark } from '../../store/bookmark.ts';
import { documentAt, endOfDocument } from '../../store/bson-array.ts';

/** Rows of a batch that stand side by side, with their ids. */
export interface Piece {
  readonly batch: Batch;
  readonly ids: readonly Bookmark[];
}

/** The rows of a batch that pass, in pieces, each in the place where the store put it. The batch stays its owner's. */
export function piecesOf(batch: Batch, passes: (id: Bookmark) => boolean): readonly Piece[] {
  const bytes = batch.slot.bytes(batch.start + batch.length);
  const pieces: Piece[] = [];
  let ids: Bookmark[] = [];
  let from = batch.start;
  const end = (to: number) => {
    const last = ids.at(-1);
    if (last) pieces.push({ ids, batch: part(batch, from, to, ids.length, last) });
    ids = [];
  };
  for (let at = batch.start; at < bytes.length;) {
    const document = documentAt(bytes, at);
    const next = endOfDocument(bytes, document);
    const id = bookmarkOf(bytes.subarray(document, next), { sort: KEY });
    if (!passes(id)) {
      end(at);
      from = next;
    } else ids.push(id);
    at = next;
  }
  end(bytes.length);
  return pieces;
}

function part({ slot }: Batch, start: number, end: number, rows: number, last: Bookmark): Batch {
  return { slot, start, length: end - start, rows, last, more: true, release: () => undefined };
}

const NOTHING = new Uint8Array(0);

/** A batch without rows and without memory, for what an encoder writes between rows. */
export const EMPTY: Batch = {
  slot: { address: 0, capacity: 0, bytes: () => NOTHING, release: () => undefined },
  start: 0,
  length: 0,
  rows: 0,
  last: null,
  more: true,
  release: () => undefined,
};
