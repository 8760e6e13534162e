import type { RowEncoder } from '../rows/rows.ts';
import { lastBookmark, reach, type Batch } from '../store/batch.ts';
import type { Bookmark } from '../store/bookmark.ts';
import type { Plan } from '../store/store.ts';

/** A segment ends with the row that makes it so large, in bytes of BSON: by rows alone, however they came in batches. */
const SEGMENT_BYTES = 1 << 20;
/** After so many bytes of text others have their turn: a batch would hold the thread for milliseconds. */
const CHUNK_BYTES = 64 * 1024;

/** Rows as text, together made one piece of a file. */
export interface Segment {
  readonly text: Buffer;
  readonly rows: number;
  /** The last row's bookmark when the segment is whole; null for what is left at the end, which may grow yet. */
  readonly bookmark: Bookmark | null;
}

/**
 * Cuts the rows of batches into segments. The last one is what was left over, with `tail` behind it, and always comes. Every
 * batch is released; the encoder is the caller's to close.
 */
export async function* segmentsOf(
  batches: AsyncIterable<Batch>,
  encoder: RowEncoder,
  plan: Pick<Plan, 'order'>,
  { head, tail }: { readonly head: string; readonly tail: string },
): AsyncGenerator<Segment, void, undefined> {
  let text: Buffer[] = [Buffer.from(head)];
  let [rows, bytes] = [0, 0];
  for await (const batch of batches) {
    try {
      for (let at = 0; at < batch.length;) {
        const slice = reach(batch, at, SEGMENT_BYTES - bytes);
        for (const chunk of encoder.encode(slice, CHUNK_BYTES)) {
          text.push(Buffer.from(chunk));
          await new Promise((resolve) => setImmediate(resolve));
        }
        at += slice.length;
        rows += slice.rows;
        bytes += slice.documentBytes;
        if (bytes < SEGMENT_BYTES) continue;
        const bookmark = at === batch.length && batch.last ? batch.last : lastBookmark(slice, plan);
        yield { text: Buffer.concat(text), rows, bookmark };
        text = [];
        [rows, bytes] = [0, 0];
      }
    } finally {
      batch.release();
    }
  }
  yield { text: Buffer.concat([...text, Buffer.from(tail)]), rows, bookmark: null };
}
