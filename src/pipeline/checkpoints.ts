import type { ProblemDocument } from '../base/errors.ts';
import type { RowEncoder } from '../rows/rows.ts';
import { headOf, lastBookmark, sliceOf, type Batch } from '../store/batch.ts';
import type { Bookmark, RowOrder } from '../store/bookmark.ts';
import { controlLines, type ControlForm, type Sums } from './control-lines.ts';
import { crc32 } from './crc32.ts';

/** While rows come, a checkpoint follows the last one after at most this many rows or milliseconds. */
const CHECKPOINT_ROWS = 10_000;
export const CHECKPOINT_MS = 5_000;
/** And after about this many bytes, because readers hold the rows that are not proved yet. */
const CHECKPOINT_BYTES = 16 * 1024 * 1024;

/** Rows are passed on in slices of about a second, so that a slow reader need not wait for the end of a batch. */
const SLICE_MS = 1_000;
const DUE_MS = CHECKPOINT_MS - SLICE_MS;
const FIRST_SLICE_ROWS = 250;
const LF = 0x0a;

export interface CheckpointOptions {
  readonly plan: RowOrder;
  /** The cursor that continues after a row. Undefined when the row's key is too long for one. */
  readonly cursorOf: (bookmark: Bookmark) => string | undefined;
  /**
   * The cursor of the stream's start, which is valid until a row has come. Null: the stream starts at its beginning.
   * Undefined: it is too long. A function: it moves on without rows.
   */
  readonly start: string | null | undefined | (() => string);
  /** A clock in milliseconds. */
  readonly now: () => number;
  /** How checkpoints and ends are written. Absent: as those of a stream of rows. */
  readonly form?: ControlForm;
  /** What the same response has sent before. */
  readonly sums?: LineSums;
}

/** The rows of a response, and the bytes and the CRC-32 of these and of its other lines that count. */
export interface LineSums {
  readonly rows: number;
  readonly bytes: number;
  readonly crc: number;
}

/**
 * Puts checkpoints between the lines of another encoder. Each has the cursor after the last row, and the number of
 * rows, the bytes and the CRC-32 of their lines since the stream's start. After a row without a cursor it waits for the
 * next row that has one. A batch without rows requests one if rows have come. Lines that are no rows (`say`) count like
 * rows, but not in the number of rows.
 */
export class CheckpointEncoder implements RowEncoder {
  readonly #lines: RowEncoder;
  readonly #options: CheckpointOptions;
  #last: Bookmark | null = null;
  #rows = 0;
  #bytes = 0;
  #crc = 0;
  #endsInRow = false;
  /** Rows and lines that were said. */
  #lineCount = 0;
  /** Lines to say before the next rows. */
  #said: string[] = [];
  #isWanted = false;
  #checked: { readonly lines: number; readonly bytes: number; readonly at: number };
  #sliceRows = FIRST_SLICE_ROWS;
  /** Where the slice begins in the batch, and where the batch will end. Bytes from the batch's first row. */
  #sliceAt = 0;
  #end = 0;

  constructor(lines: RowEncoder, options: CheckpointOptions) {
    this.#lines = lines;
    this.#options = options;
    if (options.sums) ({ rows: this.#rows, bytes: this.#bytes, crc: this.#crc } = options.sums);
    this.#checked = { lines: 0, bytes: this.#bytes, at: options.now() };
  }

  *encode(batch: Batch, chunkBytes: number): Generator<Uint8Array, void, undefined> {
    this.#end = batch.length;
    if (batch.rows === 0) yield* this.#encodeNone();
    for (let at = 0; at < this.#end;) {
      const most = Math.max(1, Math.min(this.#sliceRows, CHECKPOINT_ROWS - this.#unchecked));
      const wanted = sliceOf(batch, at, most);
      const begun = this.#options.now();
      this.#sliceAt = at;
      for (const chunk of this.#lines.encode(wanted, chunkBytes)) yield this.#counted(chunk);
      const slice = at + wanted.length > this.#end ? headOf(wanted, this.#end - at) : wanted;
      at += slice.length;
      this.#rows += slice.rows;
      this.#lineCount += slice.rows;
      const now = this.#options.now();
      this.#sliceRows = rowsOfSlice(slice.rows, now - begun, this.#sliceRows);
      // A checkpoint at a batch's end is preferred: finding a row inside a batch means walking to it.
      const isDue =
        this.#isDue(now) || (at === batch.length && this.#unchecked + batch.rows > CHECKPOINT_ROWS);
      if (at === batch.length) this.#last = batch.last;
      else if (isDue || at === this.#end) this.#last = lastBookmark(slice, this.#options.plan);
      if (isDue) yield* this.#checkpoint(now);
    }
  }

  cut(): number {
    this.#end = this.#sliceAt + this.#lines.cut();
    return this.#end;
  }

  close(): void {
    this.#lines.close();
  }

  get rows(): number {
    return this.#rows;
  }

  get sums(): LineSums {
    return { rows: this.#rows, bytes: this.#bytes, crc: this.#crc };
  }

  /** Rows and other lines since the last checkpoint, and when that was. */
  get sinceCheckpoint(): { readonly lines: number; readonly at: number } {
    return { lines: this.#unchecked, at: this.#checked.at };
  }

  /** Puts a line, LF included, before the next rows. A batch without rows writes it. */
  say(line: string): void {
    this.#said.push(line);
  }

  /** Requests a checkpoint of the next batch without rows. */
  want(): void {
    this.#isWanted = true;
  }

  end(): string {
    const cursor = this.#cursor();
    const { form = controlLines } = this.#options;
    return form.end({ ...(cursor !== undefined && { cursor }), ...shownSums(this.sums) });
  }

  /** The line that says why no more rows come. It is on a line of its own, even when a row was cut. */
  error(problem: ProblemDocument): string {
    return `${this.#endsInRow ? '\n' : ''}${controlLines.failure(problem)}`;
  }

  *#encodeNone(): Generator<Uint8Array, void, undefined> {
    const isHeartbeat = this.#said.length === 0;
    for (const line of this.#said.splice(0)) {
      this.#lineCount += 1;
      yield this.#counted(Buffer.from(line));
    }
    const now = this.#options.now();
    if (this.#isWanted || this.#isDue(now) || (isHeartbeat && this.#unchecked > 0))
      yield* this.#checkpoint(now);
  }

  get #unchecked(): number {
    return this.#lineCount - this.#checked.lines;
  }

  #isDue(now: number): boolean {
    return (
      this.#unchecked >= CHECKPOINT_ROWS ||
      this.#bytes - this.#checked.bytes >= CHECKPOINT_BYTES ||
      (this.#unchecked > 0 && now - this.#checked.at >= DUE_MS)
    );
  }

  *#checkpoint(now: number): Generator<Uint8Array, void, undefined> {
    const cursor = this.#cursor();
    if (cursor === undefined) return;
    this.#isWanted = false;
    this.#checked = { lines: this.#lineCount, bytes: this.#bytes, at: now };
    const { form = controlLines } = this.#options;
    yield Buffer.from(form.checkpoint({ cursor, ...shownSums(this.sums) }));
  }

  #counted(chunk: Uint8Array): Uint8Array {
    this.#crc = crc32(chunk, this.#crc);
    this.#bytes += chunk.length;
    this.#endsInRow = chunk[chunk.length - 1] !== LF;
    return chunk;
  }

  #cursor(): string | null | undefined {
    const { cursorOf, start } = this.#options;
    if (this.#last) return cursorOf(this.#last);
    return typeof start === 'function' ? start() : start;
  }
}

/** The sums as control lines show them. */
export function shownSums({ rows, bytes, crc }: LineSums): Sums {
  return { rows, bytes, crc32: crc.toString(16).padStart(8, '0') };
}

/** How many rows take a reader about SLICE_MS, when `rows` took it `ms`. At most four times as many as before. */
export function rowsOfSlice(rows: number, ms: number, before: number): number {
  const wanted = ms > 0 ? Math.floor((rows * SLICE_MS) / ms) : CHECKPOINT_ROWS;
  return Math.min(Math.max(1, wanted), 4 * Math.max(rows, before), CHECKPOINT_ROWS);
}
