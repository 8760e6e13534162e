import { isUtf8 } from 'node:buffer';

const [QUOTE, LF, CR] = [0x22, 0x0a, 0x0d];

/** How the cells of a CSV file are written. */
export interface Dialect {
  /** What separates the cells. */
  readonly delimiter: string;
  /** Texts that stand for no value in cells without quotes. An empty cell always does. */
  readonly missing: readonly string[];
}

/** As RFC 4180 writes CSV. */
export const COMMAS: Dialect = { delimiter: ',', missing: [] };

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
  /** Where the next record begins. */
  next = 0;
  /** The line that the next record begins on, from 1, or a blank line before it. */
  nextLine = 1;
  /** The number of cells that a record must have. null: any. */
  columns: number | null = null;
  readonly #delimiter: number;
  readonly #missing: readonly Buffer[];
  /** The number of line ends in the quoted cells of the record, and all bytes of its cells combined by OR. */
  #innerLines = 0;
  #above = 0;

  constructor({ delimiter, missing }: Dialect) {
    this.#delimiter = delimiter.charCodeAt(0);
    this.#missing = missing.map((text) => Buffer.from(text));
  }

  /** Goes to the beginning of other bytes, on the same line. */
  begin(bytes: Buffer): void {
    this.bytes = bytes;
    this.next = 0;
  }

  /**
   * Finds the next record. False: the bytes end before it does. `next` then stays where it begins. `isLast`: there are no
   * further bytes, so a record may end without a line end.
   */
  scan(isLast: boolean): boolean {
    this.#skipBlankLines(isLast);
    const { bytes } = this;
    const { length } = bytes;
    let at = this.next;
    if (at === length) return false;
    this.#innerLines = this.#above = this.cells = 0;
    this.fault = null;
    for (;;) {
      at = bytes[at] === QUOTE ? this.#quotedCell(at + 1) : this.#plainCell(at, at);
      this.cells++;
      if (at >= length || bytes[at] !== this.#delimiter) break;
      at++;
    }
    if (!isLast && (at >= length || (bytes[at] === CR && at + 1 === length))) return false;
    if (at < length) at += bytes[at] === CR && bytes[at + 1] === LF ? 2 : 1;
    this.line = this.nextLine;
    this.#check(at);
    this.nextLine += 1 + this.#innerLines;
    this.next = at;
    return true;
  }

  /** The text of a cell. */
  text(column: number): string {
    const text = this.bytes.toString('utf8', this.starts[column], this.ends[column]);
    return this.hasQuotes[column] ? text.replaceAll('""', '"') : text;
  }

  /** Whether a cell has no value. A cell in quotes has one: see Dialect. */
  isMissing(column: number): boolean {
    const [from = 0, to = 0] = [this.starts[column], this.ends[column]];
    if (this.bytes[from - 1] === QUOTE) return false;
    if (from === to) return true;
    for (const text of this.#missing)
      if (text.length === to - from && text.equals(this.bytes.subarray(from, to))) return true;
    return false;
  }

  #skipBlankLines(isLast: boolean): void {
    const { bytes } = this;
    for (;;) {
      const byte = bytes[this.next];
      if (byte !== LF && byte !== CR) return;
      if (byte === CR && this.next + 1 === bytes.length && !isLast) return; // an LF may follow
      this.next += byte === CR && bytes[this.next + 1] === LF ? 2 : 1;
      this.nextLine++;
    }
  }

  /** Returns where a cell without quotes ends. `at`: from where on its end is looked for. */
  #plainCell(from: number, start: number): number {
    const [bytes, delimiter, length] = [this.bytes, this.#delimiter, this.bytes.length];
    let [above, at] = [0, start];
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
    const [bytes, delimiter, length] = [this.bytes, this.#delimiter, this.bytes.length];
    let [hasQuotes, above, at] = [false, 0, from];
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
    const { bytes, cells, columns } = this;
    if (this.fault === null && columns !== null && cells !== columns)
      this.fault = `the row has ${cells} cells, but the header has ${columns}`;
    if (this.fault === null && this.#above > 0x7f && !isUtf8(bytes.subarray(this.next, end)))
      this.fault = 'the row is not valid UTF-8';
    if (this.fault === null) return;
    const endsLine = this.fault.includes('end of the file') && [LF, CR].includes(bytes[end - 1] ?? 0);
    const lastLine = this.line + this.#innerLines - Number(endsLine);
    if (lastLine > this.line) this.fault += `; the row extends to line ${lastLine}`;
  }
}
