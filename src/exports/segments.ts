import type { RowEncoder } from '../rows/rows.ts';
import { lastBookmark, reach, type Batch } from '../store/batch.ts';
import type { Bookmark, Ordered } from '../store/bookmark.ts';

/**
 * A segment ends with the row that brings it to this size, in bytes of BSON. Only the rows decide where it
 * ends, not how the batches divide them.
 */
const SEGMENT_BYTES = 1 << 20;
/**
 * The encoder yields to the event loop after this many bytes of text. Encoding a whole batch would hold the
 * thread for milliseconds.
 */
const CHUNK_BYTES = 64 * 1024;

/** The text of some rows, compressed together as one piece of a file. */
export interface Segment {
  readonly text: Buffer;
  readonly rows: number;
  /** The bookmark of the last row. null for the last segment, which is not full and may still grow. */
  readonly bookmark: Bookmark | null;
}

/**
 * Cuts the rows of batches into segments. The last segment holds the remaining rows, followed by `tail`. It
 * always comes, even without rows. Every batch is released. The caller closes the encoder.
 */
export async function* segmentsOf(
  batches: AsyncIterable<Batch>,
  encoder: RowEncoder,
  plan: Ordered,
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
