import { setImmediate as turn } from 'node:timers/promises';
import { Cutter } from '../base/edition/cut.ts';
import type { RowEncoder, Transcoder } from '../rows/rows.ts';
import type { Selection } from '../rows/selection.ts';
import type { Batch } from '../store/batch.ts';
import { bookmarkOf, KEY, type Bookmark } from '../store/bookmark.ts';
import { documentAt, endOfDocument } from '../store/values/bson-array.ts';

/** Bytes between which others run, as in a stream. */
const TURN_BYTES = 64 * 1024;

/** Rows that are a chunk. */
export interface CutRows {
  /** NDJSON. */
  readonly text: Uint8Array;
  readonly rows: number;
  /** Of the last row. */
  readonly bound: Bookmark;
}

/** Cuts batches that follow one another into chunks. Close it once. */
export class RowCutter {
  readonly #encoder: RowEncoder;
  readonly #cutter: Cutter;
  /** The pieces of the chunk under way. */
  #pieces: Uint8Array[] = [];
  /** The rows of the chunk under way that earlier batches had. */
  #carried = 0;
  #last: Bookmark | null = null;

  constructor(transcoder: Transcoder, shown: Selection, target: number) {
    this.#encoder = transcoder.encoder('lines', shown);
    this.#cutter = new Cutter(target);
  }

  /** The chunks that end in a batch. */
  async cut(batch: Batch): Promise<readonly CutRows[]> {
    const chunks: CutRows[] = [];
    const rows = new RowPlaces(batch);
    let ended = -this.#carried;
    let isOver = this.#pieces.length === 0;
    for (const shared of this.#encoder.encode(batch, TURN_BYTES)) {
      const piece = new Uint8Array(shared); // its memory is used again at once
      for (let at = 0; at < piece.length;) {
        const end = this.#cutter.take(piece, at);
        isOver = end >= 0;
        this.#pieces.push(piece.subarray(at, isOver ? end : piece.length));
        at = isOver ? end : piece.length;
        if (!isOver) continue;
        ended += this.#cutter.rows;
        chunks.push(this.#taken(rows.bookmarkOf(ended - 1)));
      }
      await turn();
    }
    this.#carried = isOver ? 0 : this.#cutter.rows;
    this.#last = batch.last ?? this.#last;
    return chunks;
  }

  /** The rows behind the last bound, which the end of all rows ends. Null: there are none. */
  rest(): CutRows | null {
    return this.#pieces.length > 0 && this.#last ? this.#taken(this.#last) : null;
  }

  close(): void {
    this.#encoder.close();
  }

  #taken(bound: Bookmark): CutRows {
    const text = Buffer.concat(this.#pieces);
    this.#pieces = [];
    return { text, rows: this.#cutter.rows, bound };
  }
}

/** Finds rows of a batch, from its first to its last. */
class RowPlaces {
  readonly #batch: Batch;
  #row = 0;
  #at: number;

  constructor(batch: Batch) {
    this.#batch = batch;
    this.#at = batch.start;
  }

  bookmarkOf(row: number): Bookmark {
    const { slot, start, length } = this.#batch;
    const bytes = slot.bytes(start + length);
    for (; this.#row < row; this.#row++) this.#at = endOfDocument(bytes, documentAt(bytes, this.#at));
    const document = documentAt(bytes, this.#at);
    return bookmarkOf(bytes.slice(document, endOfDocument(bytes, document)), { sort: KEY });
  }
}
