import type { Batch } from '../store/batch.ts';

/** What stands between rows: `lines` ends each with LF (NDJSON), `array` puts a comma before each but the first. */
export type Framing = 'lines' | 'array';

/**
 * Turns batches of raw BSON into JSON or CSV text, row by row in the contract's form. Implementations: transcoder.ts (wasm), and
 * the precompiled item serializer where wasm cannot run.
 */
export interface Transcoder {
  readonly name: 'wasm' | 'javascript';
  /**
   * An encoder for one sequence of batches: one page, one stream, one file. `fields`: only these top-level fields are
   * written, and the key always; without it all.
   */
  encoder(framing: Framing, fields?: readonly string[]): RowEncoder;
  /** An encoder that writes the same as CSV: a line for each row, a cell for each of `columns`. The form is told in csv.ts. */
  table(columns: readonly string[], safe: boolean): RowEncoder;
}

export interface RowEncoder {
  /**
   * The batch's rows as chunks of at most `chunkBytes` (at least 256) and, but for the last, close to it. A chunk may end anywhere, also
   * inside a row, and is a view of shared memory: valid until the next step of any encoder, or an await. Between two
   * steps other encoders may run. The batch is not released. Throws when a row is not a sound BSON document.
   */
  encode(batch: Batch, chunkBytes: number): Iterable<Uint8Array>;
  /**
   * Between two steps of `encode`: lets it end with the row under way, whose rest is still to be taken from it. Returns
   * how many bytes of the batch are written then.
   */
  cut(): number;
  /** Gives back what the encoder holds; call once, also after a failure. */
  close(): void;
}
