import type { Batch } from '../store/batch.ts';
import type { ArrowTable, ArrowWriter } from './arrow/writer.ts';
import type { TableNotation } from './csv-cell.ts';
import type { Selection } from './selection.ts';

/** What separates rows: `lines` ends each with LF (NDJSON), `array` puts a comma before each but the first. */
export type Framing = 'lines' | 'array';

/** Converts batches of raw BSON to JSON or CSV text, row by row, in the contract's form. See transcoder.ts. */
export interface Transcoder {
  /** How long it has worked in all, in milliseconds. */
  busyMs(): number;
  /** An encoder for one sequence of batches. It writes the key and what is selected, or all fields. */
  encoder(framing: Framing, selection?: Selection): RowEncoder;
  /**
   * An encoder of CSV: a cell for each of `columns` (see csv-cell.ts). With `fields` the columns are those paths
   * (columnsOfFields). Otherwise each is the name of a top-level field, dots included.
   */
  table(
    columns: readonly string[],
    safe: boolean,
    selection?: Selection,
    notation?: TableNotation,
  ): RowEncoder;
  arrow(table: ArrowTable, selection: Selection): ArrowWriter;
}

export interface RowEncoder {
  /**
   * The batch's rows as chunks of at most `chunkBytes` (at least 256), which may end inside a row. A chunk is a view of
   * shared memory, valid until an await or the next step of any encoder. The batch is not released. Throws when a row
   * is not a sound BSON document; RangeError when `chunkBytes` is too small. Other encoders may run between two steps.
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
