import { END_OF_STREAM } from '../rows/arrow/messages.ts';
import type { ArrowWriter } from '../rows/arrow/writer.ts';
import { reach, type Batch } from '../store/batch.ts';
import type { ArrowEncoder, BodySums } from '../stream/arrow-encoder.ts';
import { SEGMENT_BYTES, type SegmentWriter } from './segment-writer.ts';

/**
 * The size of a segment that becomes a row group of Parquet: about 80,000 rows of 200 bytes. Larger ones compress hardly
 * better, and an export holds three of them. Bytes of BSON.
 */
const ROW_GROUP_BYTES = 1 << 24;
/** Record batches are made of so many bytes of BSON at a time, however the batches of the store divide the rows. */
const GATHERED_BYTES = 1 << 20;

const NOTHING = new Uint8Array(0);

/** What stands around the record batches of a segment. */
interface Frame {
  readonly segmentBytes: number;
  begin(): Uint8Array;
  end(isLast: boolean): Uint8Array;
  readonly bodies: () => BodySums | undefined;
}

/** A file in Arrow: one stream, whose last record batch says that it is whole. */
export function arrowFrame(head: Uint8Array, encoder: ArrowEncoder, isContinued: boolean): Frame {
  let next = isContinued ? NOTHING : head;
  return {
    segmentBytes: SEGMENT_BYTES,
    begin: () => {
      const begin = next;
      next = NOTHING;
      return begin;
    },
    end: (isLast) => (isLast ? encoder.end() : NOTHING),
    bodies: () => ({ bytes: encoder.sums.bytes, crc32: encoder.sums.crc32 }),
  };
}

/** What becomes a file in Parquet: each segment is a stream, which becomes a row group. */
export function parquetFrame(head: Uint8Array): Frame {
  return {
    segmentBytes: ROW_GROUP_BYTES,
    begin: () => head,
    end: () => END_OF_STREAM,
    bodies: () => undefined,
  };
}

/** Writes record batches of Arrow. Rows are gathered first, so that only they decide where a record batch ends. */
export class TableSegments implements SegmentWriter {
  readonly #writer: ArrowWriter;
  readonly #encoder: ArrowEncoder;
  readonly #frame: Frame;
  #parts: Buffer[] = [];
  #rows = 0;
  #bytes = 0;

  /** `encoder` writes through `writer`, and is closed here. */
  constructor(writer: ArrowWriter, encoder: ArrowEncoder, frame: Frame) {
    this.#writer = writer;
    this.#encoder = encoder;
    this.#frame = frame;
  }

  get segmentBytes(): number {
    return this.#frame.segmentBytes;
  }

  get bodies(): BodySums | undefined {
    return this.#frame.bodies();
  }

  begin(): Uint8Array {
    return this.#frame.begin();
  }

  *write(rows: Batch, chunkBytes: number): Generator<Uint8Array, void, undefined> {
    for (let at = 0; at < rows.length;) {
      const slice = reach(rows, at, GATHERED_BYTES - this.#bytes);
      const end = slice.start + slice.length;
      this.#parts.push(Buffer.from(slice.slot.bytes(end).subarray(slice.start)));
      this.#rows += slice.rows;
      this.#bytes += slice.documentBytes;
      at += slice.length;
      if (this.#bytes >= GATHERED_BYTES) yield* this.#flush(chunkBytes);
    }
  }

  *end(isLast: boolean, chunkBytes: number): Generator<Uint8Array, void, undefined> {
    yield* this.#flush(chunkBytes);
    yield this.#frame.end(isLast);
  }

  close(): void {
    this.#encoder.close();
  }

  *#flush(chunkBytes: number): Generator<Uint8Array, void, undefined> {
    if (this.#rows === 0) return;
    const batch = this.#writer.gather(this.#parts, this.#rows);
    this.#parts = [];
    [this.#rows, this.#bytes] = [0, 0];
    try {
      yield* this.#encoder.encode(batch, chunkBytes);
    } finally {
      batch.release();
    }
  }
}
