import type { ProblemDocument } from '../errors.ts';
import type { RowEncoder } from '../rows/rows.ts';
import { headOf, lastBookmark, sliceOf, type Batch } from '../store/batch.ts';
import type { Bookmark } from '../store/bookmark.ts';
import type { Plan } from '../store/store.ts';
import { controlLines, type Tally } from './control-lines.ts';
import { crc32 } from './crc32.ts';

/** A checkpoint stands at least behind so many rows, or so many milliseconds after the last one, while rows come. */
const CHECKPOINT_ROWS = 10_000;
export const CHECKPOINT_MS = 5_000;
/** And about so many bytes: readers hold what is not proved yet. */
const CHECKPOINT_BYTES = 16 * 1024 * 1024;

/** Rows are passed on in slices that take a reader about a second: a slow one does not wait for a batch to be through. */
const SLICE_MS = 1_000;
const DUE_MS = CHECKPOINT_MS - SLICE_MS;
const FIRST_SLICE_ROWS = 250;
const LF = 0x0a;

export interface CheckpointOptions {
  readonly plan: Plan;
  /** The cursor that continues behind a row. */
  readonly cursorOf: (bookmark: Bookmark) => string;
  /** The cursor of where the stream begins, which holds until a row has come; null: at its beginning. */
  readonly start: string | null;
  /** A clock in milliseconds. */
  readonly now: () => number;
}

/**
 * Puts checkpoints between the lines of another encoder: control lines that say where the rows before them end (the cursor
 * behind the last one), how many they are, and the bytes and CRC-32 of their lines, since the stream's start. A batch of no
 * rows asks for one, when rows have come since the last.
 */
export class CheckpointEncoder implements RowEncoder {
  readonly #lines: RowEncoder;
  readonly #options: CheckpointOptions;
  #last: Bookmark | null = null;
  #rows = 0;
  #bytes = 0;
  #crc = 0;
  #endsInRow = false;
  #checked: { readonly rows: number; readonly bytes: number; readonly at: number };
  #sliceRows = FIRST_SLICE_ROWS;
  /** How far in the batch its slice begins, and how far it is to go. */
  #sliceAt = 0;
  #end = 0;

  constructor(lines: RowEncoder, options: CheckpointOptions) {
    this.#lines = lines;
    this.#options = options;
    this.#checked = { rows: 0, bytes: 0, at: options.now() };
  }

  *encode(batch: Batch, chunkBytes: number): Generator<Uint8Array, void, undefined> {
    this.#end = batch.length;
    if (batch.rows === 0 && this.#rows > this.#checked.rows) yield this.#checkpoint(this.#options.now());
    for (let at = 0; at < this.#end;) {
      const most = Math.min(this.#sliceRows, CHECKPOINT_ROWS - (this.#rows - this.#checked.rows));
      const wanted = sliceOf(batch, at, most);
      const begun = this.#options.now();
      this.#sliceAt = at;
      yield* this.#encodeLines(wanted, chunkBytes);
      const slice = at + wanted.length > this.#end ? headOf(wanted, this.#end - at) : wanted;
      at += slice.length;
      this.#rows += slice.rows;
      const now = this.#options.now();
      this.#sliceRows = rowsOfSlice(slice.rows, now - begun, this.#sliceRows);
      const unchecked = this.#rows - this.#checked.rows;
      // Rather at a batch's end, when the next one would go over the number: to a row amid a batch one has to walk.
      const isDue =
        unchecked >= CHECKPOINT_ROWS ||
        (at === batch.length && unchecked + batch.rows > CHECKPOINT_ROWS) ||
        this.#bytes - this.#checked.bytes >= CHECKPOINT_BYTES ||
        now - this.#checked.at >= DUE_MS;
      if (at === batch.length) this.#last = batch.last;
      else if (isDue || at === this.#end) this.#last = lastBookmark(slice, this.#options.plan);
      if (isDue) yield this.#checkpoint(now);
    }
  }

  cut(): number {
    this.#end = this.#sliceAt + this.#lines.cut();
    return this.#end;
  }

  close(): void {
    this.#lines.close();
  }

  /** The line that says all rows are out. */
  end(): string {
    return controlLines.end(this.#tally());
  }

  /** The line that says why no more rows come; on a line of its own, also when a row was cut. */
  error(problem: ProblemDocument): string {
    return `${this.#endsInRow ? '\n' : ''}${controlLines.failure(problem)}`;
  }

  #checkpoint(now: number): Uint8Array {
    this.#checked = { rows: this.#rows, bytes: this.#bytes, at: now };
    return Buffer.from(controlLines.checkpoint(this.#tally()));
  }

  *#encodeLines(slice: Batch, chunkBytes: number): Generator<Uint8Array, void, undefined> {
    for (const chunk of this.#lines.encode(slice, chunkBytes)) {
      this.#crc = crc32(chunk, this.#crc);
      this.#bytes += chunk.length;
      this.#endsInRow = chunk[chunk.length - 1] !== LF;
      yield chunk;
    }
  }

  #tally(): Tally {
    return {
      cursor: this.#last ? this.#options.cursorOf(this.#last) : this.#options.start,
      rows: this.#rows,
      bytes: this.#bytes,
      crc32: this.#crc.toString(16).padStart(8, '0'),
    };
  }
}

/** How many rows take a reader about SLICE_MS, when `rows` took it `ms`; never many more at once than before. */
function rowsOfSlice(rows: number, ms: number, before: number): number {
  const wanted = ms > 0 ? Math.floor((rows * SLICE_MS) / ms) : CHECKPOINT_ROWS;
  return Math.min(Math.max(1, wanted), 4 * Math.max(rows, before), CHECKPOINT_ROWS);
}
