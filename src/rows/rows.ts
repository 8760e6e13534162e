import type { Batch } from '../store/batch.ts';
import type { ArrowTable, ArrowWriter } from './arrow/writer.ts';
import type { Selection } from './selection.ts';

/** What separates rows: `lines` ends each with LF (NDJSON), `array` puts a comma before each but the first. */
export type Framing = 'lines' | 'array';

/**
 * Converts batches of raw BSON to JSON or CSV text, row by row, in the contract's form. See transcoder.ts. */
export interface Transcoder {
  /** How long it has worked in all, in milliseconds. */
  busyMs(): number;
  /**
   * Creates an encoder for one sequence of batches: one page, one stream, one file. Of each row, the key and what is
   * selected are written. Without a selection, all fields are written.
   */
  encoder(framing: Framing, selection?: Selection): RowEncoder;
  /**
   * Creates an encoder that writes the rows as CSV: a line for each row, a cell for each of `columns`. See csv-cell.ts for
   * the form. With a selection that has `fields`, the columns are those fields (columnsOfFields): each is a path. Without
   * `fields`, each is the name of a top-level field, dots included.
   */
  table(columns: readonly string[], safe: boolean, selection?: Selection): RowEncoder;
  arrow(table: ArrowTable, selection: Selection): ArrowWriter;
}

export interface RowEncoder {
  /**
   * Yields the batch's rows as chunks of at most `chunkBytes` (at least 256). All chunks but the last are close to that
   * size. A chunk may end anywhere, also inside a row. It is a view of shared memory, valid until the next step of any
   * encoder, or an await. Other encoders may run between two steps. The batch is not released. Throws when a row is not
   * a sound BSON document; RangeError when `chunkBytes` is too small.
   */
  encode(batch: Batch, chunkBytes: number): Iterable<Uint8Array>;
  /**
   * Called between two steps of `encode`: makes it end with the row under way. The rest of that row must still be taken
   * from it. Returns how many bytes of the batch are written then.
   */
  cut(): number;
  /** Releases what the encoder holds. Call once, also after a failure. */
  close(): void;
}
