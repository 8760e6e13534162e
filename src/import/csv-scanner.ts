import { isUtf8 } from 'node:buffer';
import { CsvMarks } from './csv-marks.ts';
import { BrokenSource, LONGEST_ROW } from './row.ts';

const QUOTE = 0x22;
const LF = 0x0a;
const CR = 0x0d;
/** The last byte of ASCII. */
const ASCII = 0x7f;

const NOT_UTF8 = 'the row is not valid UTF-8; --encoding windows-1252 reads a file of Windows';

/** How a table is written. */
export interface Dialect {
  readonly delimiter: string;
  /** Texts that stand for no value in cells without quotes. An empty cell always does. */
  readonly missing: readonly string[];
  /** The line that the content begins on. Absent: the first. */
  readonly line?: number;
}

/** A record of CSV: its cells are in `bytes`. It is valid until the next one is asked for. */
export type CsvRecord = Omit<CsvScanner, 'begin' | 'next' | 'end'>;

/**
 * Finds the records of CSV (RFC 4180) and their cells in bytes, without a text for each cell. A record ends with CRLF, LF
 * or CR outside of quotes. Blank lines are ignored.
 *
 * A quote inside of a cell without quotes does not begin anything, and text behind a closing quote belongs to the cell as
 * if it had no quotes: so the record with the fault ends where its line does, and those after it can be read.
 */
export class CsvScanner {
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
  readonly #marks = new CsvMarks();
  /** Whether there are no further bytes, and whether the records are in UTF-8, all of them. */
  #isLast = false;
  #isUtf8 = true;
  /** Where the next record begins, its first mark, and the line that it begins on, from 1, or a blank line before it. */
  #next = 0;
  #mark = 0;
  #nextLine: number;
  /** The number of cells that a record must have: that of the first. */
  #columns: number | null = null;
  readonly #delimiter: number;
  readonly #missing: readonly Buffer[];
  /** The number of line ends in the quoted cells of the record. */
  #innerLines = 0;

  constructor({ delimiter, missing, line = 1 }: Dialect) {
    this.#nextLine = line;
    this.#delimiter = delimiter.charCodeAt(0);
    this.#missing = missing.map((text) => Buffer.from(text));
  }

  /** Goes on in other bytes, which begin where the next record does. `isLast`: a record may end with them, without a line end. */
  begin(bytes: Buffer, isLast: boolean): void {
    this.bytes = bytes;
    this.#isLast = isLast;
    this.#next = this.#mark = 0;
    this.#marks.find(bytes, this.#delimiter);
    // A record ends behind a byte of ASCII, which no character of several bytes has.
    let end = bytes.length;
    if (!isLast) while (end > 0 && (bytes[end - 1] ?? 0) > ASCII) end--;
    this.#isUtf8 = isUtf8(bytes.subarray(0, end));
  }

  /** Finds the next record. False: the bytes end before it does. */
  next(): boolean {
    this.#skipLines();
    const { bytes } = this;
    const { length } = bytes;
    if (this.#next === length) return false;
    this.#innerLines = this.cells = 0;
    this.fault = null;
    const mark = this.#mark;
    const at = this.#cells();
    // An LF may follow a CR.
    if (!this.#isLast && (at >= length || (bytes[at] === CR && at + 1 === length))) {
      this.#mark = mark;
      return false;
    }
    const end = at < length ? this.#behindLine(at) : at;
    this.line = this.#nextLine;
    this.#check(end);
    this.#nextLine += 1 + this.#innerLines;
    this.#next = end;
    return true;
  }

  /** Where the record begins that the bytes do not have whole. Throws BrokenSource when it is too long. */
  end(): number {
    if (this.bytes.length - this.#next > LONGEST_ROW)
      throw new BrokenSource(
        `the row on line ${this.#nextLine} is longer than 16 MB; a quote may not be closed`,
      );
    return this.#next;
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

  /** Passes blank lines. */
  #skipLines(): void {
    const { bytes } = this;
    while (
      bytes[this.#next] === LF ||
      (bytes[this.#next] === CR && (this.#isLast || this.#next + 1 < bytes.length))
    ) {
      this.#next = this.#behindLine(this.#next);
      this.#nextLine++;
    }
  }

  /** The index behind the line end at an index, which the next mark is. */
  #behindLine(at: number): number {
    const marks = this.bytes[at] === CR && this.bytes[at + 1] === LF ? 2 : 1;
    this.#mark += marks;
    return at + marks;
  }

  /** Finds the cells of a record. Returns where the last one ends, which the next mark is. */
  #cells(): number {
    const { bytes } = this;
    const delimiter = this.#delimiter;
    let from = this.#next;
    for (;;) {
      const end = bytes[from] === QUOTE ? this.#quotedCell(from + 1) : this.#plainCell(from);
      this.cells++;
      if (bytes[end] !== delimiter) return end;
      this.#mark++;
      from = end + 1;
    }
  }

  /** Finds a cell without quotes from the next mark on. Returns where it ends, which the next mark is then. */
  #plainCell(from: number): number {
    const { bytes } = this;
    const delimiter = this.#delimiter;
    const { places } = this.#marks;
    const { length } = bytes;
    let mark = this.#mark;
    let end = places[mark] ?? length;
    for (; end < length; end = places[++mark] ?? length) {
      const byte = bytes[end];
      if (byte === delimiter || byte === LF || byte === CR) break;
      if (byte === QUOTE) this.fault = 'a quote is misplaced or not closed';
    }
    this.#mark = mark;
    this.#add(from, end, false);
    return end;
  }

  /** The same for a cell in quotes. `from` is behind the first of them, which the next mark is. */
  #quotedCell(from: number): number {
    const { bytes } = this;
    const { places } = this.#marks;
    const { length } = bytes;
    let hasQuotes = false;
    let mark = this.#mark + 1;
    let end = places[mark] ?? length;
    for (; end < length; end = places[++mark] ?? length) {
      const byte = bytes[end];
      if (byte === LF || (byte === CR && bytes[end + 1] !== LF)) this.#innerLines++;
      if (byte !== QUOTE) continue;
      if (bytes[end + 1] !== QUOTE) break;
      hasQuotes = true;
      mark++;
    }
    this.#mark = mark;
    this.#add(from, end, hasQuotes);
    if (end >= length) {
      this.fault = 'a quote is not closed before the end of the file';
      return length;
    }
    this.#mark++;
    const behind = bytes[end + 1];
    if (behind === undefined || behind === this.#delimiter || behind === LF || behind === CR) return end + 1;
    this.fault = 'a quote is misplaced or not closed';
    return this.#plainCell(from);
  }

  #add(from: number, to: number, hasQuotes: boolean): void {
    const { cells } = this;
    this.starts[cells] = from;
    this.ends[cells] = to;
    this.hasQuotes[cells] = hasQuotes;
  }

  /** Finds the fault of the record, which ends at `end`. */
  #check(end: number): void {
    const { cells } = this;
    const columns = (this.#columns ??= cells);
    if (this.fault === null && cells !== columns)
      this.fault = `the row has ${cells} cells, but the header has ${columns}`;
    if (this.fault === null && !this.#isUtf8 && this.#isOther(end)) this.fault = NOT_UTF8;
    if (this.fault === null) return;
    const endsLine = this.fault.includes('end of the file') && [LF, CR].includes(this.bytes[end - 1] ?? 0);
    const lastLine = this.line + this.#innerLines - Number(endsLine);
    if (lastLine > this.line) this.fault += `; the row extends to line ${lastLine}`;
  }

  /** Whether the record, which ends at `end`, has a cell of other bytes than UTF-8. The delimiter may be one. */
  #isOther(end: number): boolean {
    const { bytes, starts, ends } = this;
    let above = 0;
    for (let cell = 0; cell < this.cells; cell++) {
      const to = ends[cell] ?? 0;
      for (let at = starts[cell] ?? 0; at < to; at++) above |= bytes[at] ?? 0;
    }
    return above > ASCII && !isUtf8(bytes.subarray(this.#next, end));
  }
}
