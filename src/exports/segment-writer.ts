import type { RowEncoder } from '../rows/rows.ts';
import type { Batch } from '../store/batch.ts';
import type { BodySums } from '../stream/arrow-encoder.ts';

/** The size of a segment, in bytes of BSON. */
export const SEGMENT_BYTES = 1 << 20;

/**
 * Writes the rows of a file as segments. Chunks are valid until the next step, or an await, as those of a RowEncoder.
 * Neither they nor the ends of segments depend on how batches divide the rows.
 */
export interface SegmentWriter {
  /** A segment ends with the row that brings it to this size, in bytes of BSON. */
  readonly segmentBytes: number;
  /** What the next attempt needs to go on after a segment. */
  readonly bodies: BodySums | undefined;
  /** What stands before the rows of the next segment. */
  begin(): Uint8Array;
  /** Writes rows. They may come out later, but not after `end`. */
  write(rows: Batch, chunkBytes: number): Iterable<Uint8Array>;
  /** What is left of the segment. `isLast`: nothing follows in the file. */
  end(isLast: boolean, chunkBytes: number): Iterable<Uint8Array>;
  /** Call once, also after a failure. */
  close(): void;
}

/** Writes text between a head and a tail. */
export class TextSegments implements SegmentWriter {
  readonly segmentBytes = SEGMENT_BYTES;
  readonly bodies = undefined;
  readonly #encoder: RowEncoder;
  readonly #tail: string;
  #head: string;

  constructor(encoder: RowEncoder, { head, tail }: { readonly head: string; readonly tail: string }) {
    this.#encoder = encoder;
    this.#head = head;
    this.#tail = tail;
  }

  begin(): Uint8Array {
    const head = Buffer.from(this.#head);
    this.#head = '';
    return head;
  }

  write(rows: Batch, chunkBytes: number): Iterable<Uint8Array> {
    return this.#encoder.encode(rows, chunkBytes);
  }

  end(isLast: boolean): Iterable<Uint8Array> {
    return isLast ? [Buffer.from(this.#tail)] : [];
  }

  close(): void {
    this.#encoder.close();
  }
}
