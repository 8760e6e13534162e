import { isUtf8 } from 'node:buffer';
import type { Piece } from '../../../src/import/chunks.ts';
import type { Dialect } from '../../../src/import/csv-scanner.ts';
import { BrokenSource, LONGEST_ROW } from '../../../src/import/row.ts';

const QUOTE = 0x22;
const LF = 0x0a;
const CR = 0x0d;

const NOT_UTF8 = 'the row is not valid UTF-8; --encoding windows-1252 reads a file of Windows';

/**
 * Finds what CsvScanner finds, by a look at one byte after the other. A record ends with CRLF, LF or CR outside of quotes. Blank
 * lines are ignored.
 *
 * A quote inside of a cell without quotes does not begin anything, and text behind a closing quote belongs to the cell as
 * if it had no quotes: so the record with the fault ends where its line does, and those after it can be read.
 */
export class ByteScanner {
  /** Where each cell of the record begins and ends, without its quotes, and whether it has doubled quotes. */
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  readonly hasQuotes: boolean[] = [];
  bytes: Buffer = Buffer.alloc(0);
  /** The number of cells of the record, and the line that it begins on. */
  cells = 0;
  line = 0;
  /** Why the record is not valid. null: it is. */
  fault: string | null = null;
  /** Where the next record begins, and the line that it begins on, from 1, or a blank line before it. */
  #next = 0;
  #nextLine: number;
  /** The number of cells that a record must have: that of the first. */
  #columns: number | null = null;
  readonly #delimiter: number;
  readonly #missing: readonly Buffer[];
  /** The number of line ends in the quoted cells of the record, and all bytes of its cells combined by OR. */
  #innerLines = 0;
  #above = 0;

  constructor({ delimiter, missing, line = 1 }: Dialect) {
    this.#nextLine = line;
    this.#delimiter = delimiter.charCodeAt(0);
    this.#missing = missing.map((text) => Buffer.from(text));
  }

  /** The records that end in a piece. `isLast`: there are no further bytes, so a record may end without a line end. */
  *records(piece: Piece, isLast: boolean): Generator<this> {
    this.bytes = piece.bytes;
    this.#next = 0;
    while (this.#scan(isLast)) {
      yield this;
      this.#columns ??= this.cells;
    }
    piece.rest = this.#next;
    if (piece.bytes.length - this.#next > LONGEST_ROW)
      throw new BrokenSource(
        `the row on line ${this.#nextLine} is longer than 16 MB; a quote may not be closed`,
      );
  }

  text(column: number): string {
    const text = this.bytes.toString('utf8', this.starts[column], this.ends[column]);
    return this.hasQuotes[column] ? text.replaceAll('""', '"') : text;
  }

  /** Whether a cell has no value. A cell in quotes has one: see Dialect. */
  isMissing(column: number): boolean {
    const from = this.starts[column] ?? 0;
    const to = this.ends[column] ?? 0;
    if (this.bytes[from - 1] === QUOTE) return false;
    if (from === to) return true;
    for (const text of this.#missing)
      if (text.length === to - from && text.equals(this.bytes.subarray(from, to))) return true;
    return false;
  }

  /** Finds the next record. False: the bytes end before it does. */
  #scan(isLast: boolean): boolean {
    const { bytes } = this;
    const { length } = bytes;
    while (bytes[this.#next] === LF || (bytes[this.#next] === CR && (isLast || this.#next + 1 < length))) {
      this.#next = this.#behindLine(this.#next);
      this.#nextLine++;
    }
    let at = this.#next;
    if (at === length) return false;
    this.#innerLines = this.#above = this.cells = 0;
    this.fault = null;
    for (;;) {
      at = bytes[at] === QUOTE ? this.#quotedCell(at + 1) : this.#plainCell(at, at);
      this.cells++;
      if (at >= length || bytes[at] !== this.#delimiter) break;
      at++;
    }
    if (!isLast && (at >= length || (bytes[at] === CR && at + 1 === length))) return false; // an LF may follow
    if (at < length) at = this.#behindLine(at);
    this.line = this.#nextLine;
    this.#check(at);
    this.#nextLine += 1 + this.#innerLines;
    this.#next = at;
    return true;
  }

  /** The index behind the line end at an index. */
  #behindLine(at: number): number {
    return at + (this.bytes[at] === CR && this.bytes[at + 1] === LF ? 2 : 1);
  }

  /** Returns where a cell without quotes ends. `at`: from where on its end is looked for. */
  #plainCell(from: number, start: number): number {
    const bytes = this.bytes;
    const delimiter = this.#delimiter;
    const length = this.bytes.length;
    let above = 0;
    let at = start;
    for (; at < length; at++) {
      const byte = bytes[at] ?? 0;
      if (byte === delimiter || byte === LF || byte === CR) break;
      if (byte === QUOTE) this.fault = 'a quote is misplaced or not closed';
      above |= byte;
    }
    this.#above |= above;
    this.#add(from, at, false);
    return at;
  }

  /** The same for a cell in quotes. `from` is behind the first of them. */
  #quotedCell(from: number): number {
    const bytes = this.bytes;
    const delimiter = this.#delimiter;
    const length = this.bytes.length;
    let hasQuotes = false;
    let above = 0;
    let at = from;
    for (; at < length; at++) {
      const byte = bytes[at] ?? 0;
      above |= byte;
      if (byte === LF || (byte === CR && bytes[at + 1] !== LF)) this.#innerLines++;
      if (byte !== QUOTE) continue;
      if (bytes[at + 1] !== QUOTE) break;
      hasQuotes = true;
      at++;
    }
    this.#above |= above;
    this.#add(from, at, hasQuotes);
    const behind = bytes[at + 1];
    if (at >= length) {
      this.fault = 'a quote is not closed before the end of the file';
      return length;
    }
    if (behind !== undefined && behind !== delimiter && behind !== LF && behind !== CR) {
      this.fault = 'a quote is misplaced or not closed';
      return this.#plainCell(from, at + 1);
    }
    return at + 1;
  }

  #add(from: number, to: number, hasQuotes: boolean): void {
    const { cells } = this;
    this.starts[cells] = from;
    this.ends[cells] = to;
    this.hasQuotes[cells] = hasQuotes;
  }

  /** Finds the fault of the record, which ends at `end`. */
  #check(end: number): void {
    const { bytes, cells } = this;
    const columns = this.#columns ?? cells;
    if (this.fault === null && cells !== columns)
      this.fault = `the row has ${cells} cells, but the header has ${columns}`;
    if (this.fault === null && this.#above > 0x7f && !isUtf8(bytes.subarray(this.#next, end)))
      this.fault = NOT_UTF8;
    if (this.fault === null) return;
    const endsLine = this.fault.includes('end of the file') && [LF, CR].includes(bytes[end - 1] ?? 0);
    const lastLine = this.line + this.#innerLines - Number(endsLine);
    if (lastLine > this.line) this.fault += `; the row extends to line ${lastLine}`;
  }
}
