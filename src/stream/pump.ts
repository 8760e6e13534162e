import type { RowEncoder } from '../serialize/rows.ts';
import type { Batch } from '../store/batch.ts';
import type { Sink } from './sink.ts';

/** What stands before the first row and after the last. `tail` is asked for once all rows are out. */
export interface Frame {
  readonly head: string;
  readonly tail: () => string;
}

/**
 * The one loop between store and client: each batch through the encoder into the sink, the next one only when the sink
 * takes more. Resolves when everything was written (not ended); rejects with what the store or the sink reports. Every
 * batch taken is released, and the encoder closed, in any case. Returns the number of rows written.
 */
export async function pump(
  batches: AsyncIterable<Batch>,
  encoder: RowEncoder,
  frame: Frame,
  sink: Sink,
): Promise<number> {
  let rows = 0;
  let headWritten = false;
  try {
    for await (const batch of batches) {
      try {
        if (!headWritten) await write(sink, frame.head);
        headWritten = true;
        for (const chunk of encoder.encode(batch, sink.chunkBytes)) {
          const full = sink.write(chunk);
          if (full) await full; // awaiting nothing would cost a turn of the microtask queue a chunk
        }
        rows += batch.rows;
      } finally {
        batch.release();
      }
      const flushed = sink.flush();
      if (flushed) await flushed;
    }
    await write(sink, frame.tail());
    return rows;
  } finally {
    encoder.close();
  }
}

async function write(sink: Sink, text: string): Promise<void> {
  if (text !== '') await sink.write(Buffer.from(text));
}
