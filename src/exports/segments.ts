import { lastBookmark, reach, type Batch } from '../store/batch.ts';
import type { Bookmark, Ordered } from '../store/bookmark.ts';
import type { BodySums } from '../stream/arrow-encoder.ts';
import type { SegmentWriter } from './segment-writer.ts';

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
  /** See Kept. */
  readonly bodies: BodySums | undefined;
}

/**
 * Cuts the rows of batches into segments. A segment ends with the row that brings it to the writer's size. Only the rows
 * decide where it ends, not how the batches divide them. The last segment holds the remaining rows. It
 * always comes, even without rows. Every batch is released. The caller closes the writer.
 */
export async function* segmentsOf(
  batches: AsyncIterable<Batch>,
  writer: SegmentWriter,
  plan: Ordered,
): AsyncGenerator<Segment, void, undefined> {
  let text: Uint8Array[] = [];
  let [rows, bytes] = [0, 0];
  const add = async (chunks: Iterable<Uint8Array>) => {
    for (const chunk of chunks) {
      text.push(Buffer.from(chunk));
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  text.push(writer.begin());
  for await (const batch of batches) {
    try {
      for (let at = 0; at < batch.length;) {
        const slice = reach(batch, at, writer.segmentBytes - bytes);
        await add(writer.write(slice, CHUNK_BYTES));
        at += slice.length;
        rows += slice.rows;
        bytes += slice.documentBytes;
        if (bytes < writer.segmentBytes) continue;
        const bookmark = at === batch.length && batch.last ? batch.last : lastBookmark(slice, plan);
        await add(writer.end(false, CHUNK_BYTES));
        yield { text: Buffer.concat(text), rows, bookmark, bodies: writer.bodies };
        text = [writer.begin()];
        [rows, bytes] = [0, 0];
      }
    } finally {
      batch.release();
    }
  }
  await add(writer.end(true, CHUNK_BYTES));
  yield { text: Buffer.concat(text), rows, bookmark: null, bodies: writer.bodies };
}
