import { isUtf8 } from 'node:buffer';
import type { Cell, Dialect } from '../csv-parser.ts';

const [QUOTE, LF, CR] = [0x22, 0x0a, 0x0d];
/** In place of the end of a cell. */
const [PART, UNUSUAL] = [-1, -2];

/** What a scan found: a valid record, the beginning of one, or one that the general way must read. */
export type Found = 'record' | 'part' | 'unusual';

/**
 * Finds the records of CSV and their cells in bytes, without a text for each cell. It takes a record only when it is
 * certainly valid: as many cells as the header has, quotes only around cells, inner ones doubled, UTF-8.
 */
export class CsvScanner {
  /** Where each cell of the record begins and ends, without its quotes, and whether it has doubled quotes. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly hasQuotes: Uint8Array;
  bytes: Buffer = Buffer.alloc(0);
  /** Where the record begins, and the line that it begins on. */
  start = 0;
  line = 0;
  /** Where the next record begins, and the line that it begins on. */
  next = 0;
  nextLine: number;
  readonly #columns: number;
  readonly #delimiter: number;
  readonly #missing: readonly Buffer[];
  /** The number of line ends in the quoted cells so far, and all bytes of cells combined by OR. */
  #innerLines = 0;
  #above = 0;

  constructor(columns: number, { delimiter, missing }: Dialect, line: number) {
    this.#columns = columns;
    this.#delimiter = delimiter.charCodeAt(0);
    this.#missing = missing.map((text) => Buffer.from(text));
    this.nextLine = line;
    this.starts = new Int32Array(columns);
    this.ends = new Int32Array(columns);
    this.hasQuotes = new Uint8Array(columns);
  }

  /** Goes to the beginning of other bytes, on the same line. */
  begin(bytes: Buffer): void {
    this.bytes = bytes;
    this.next = 0;
  }

  /** Finds the next record. When there is none, `next` stays where it would begin. */
  scan(): Found {
    this.#skipEmptyLines();
    const bytes = this.bytes;
    let at = this.next;
    this.#innerLines = this.#above = 0;
    for (let column = 0; ; column++) {
      if (column === this.#columns) return 'unusual';
      at = bytes[at] === QUOTE ? this.#quotedCell(column, at + 1) : this.#plainCell(column, at);
      if (at < 0) return at === PART ? 'part' : 'unusual';
      const byte = bytes[at];
      if (byte === this.#delimiter) {
        at++;
        continue;
      }
      if (column + 1 < this.#columns) return 'unusual';
      if (byte === CR && at + 1 === bytes.length) return 'part';
      at += byte === CR && bytes[at + 1] === LF ? 2 : 1;
      break;
    }
    if (this.#above > 0x7f && !isUtf8(bytes.subarray(this.next, at))) return 'unusual';
    this.start = this.next;
    this.line = this.nextLine;
    this.next = at;
    this.nextLine += 1 + this.#innerLines;
    return 'record';
  }

  /** The text of a cell. */
  text(column: number): string {
    const text = this.bytes.toString('utf8', this.starts[column], this.ends[column]);
    return this.hasQuotes[column] === 1 ? text.replaceAll('""', '"') : text;
  }

  /** Whether a cell has no value. A cell in quotes has one: see Dialect. */
  isMissing(column: number): boolean {
    const [from = 0, to = 0] = [this.starts[column], this.ends[column]];
    if (this.bytes[from - 1] === QUOTE) return false;
    if (from === to) return true;
    return this.#missing.some(
      (text) => text.length === to - from && text.equals(this.bytes.subarray(from, to)),
    );
  }

  /** All cells. */
  cells(): readonly Cell[] {
    return Array.from(this.starts, (_, column) => (this.isMissing(column) ? null : this.text(column)));
  }

  #skipEmptyLines(): void {
    const bytes = this.bytes;
    for (;;) {
      const byte = bytes[this.next];
      if (byte === CR && bytes[this.next + 1] === LF) this.next++;
      else if (byte !== LF && (byte !== CR || this.next + 1 === bytes.length)) return;
      this.next++;
      this.nextLine++;
    }
  }

  /** Returns where a cell without quotes ends, or PART or UNUSUAL. */
  #plainCell(column: number, from: number): number {
    const [bytes, delimiter, length] = [this.bytes, this.#delimiter, this.bytes.length];
    let above = 0;
    for (let at = from; at < length; at++) {
      const byte = bytes[at] ?? 0;
      if (byte === delimiter || byte === LF || byte === CR) {
        this.starts[column] = from;
        this.ends[column] = at;
        this.hasQuotes[column] = 0;
        this.#above |= above;
        return at;
      }
      if (byte === QUOTE) return UNUSUAL;
      above |= byte;
    }
    return PART;
  }

  /** The same for a cell in quotes. `from` is behind the first of them. */
  #quotedCell(column: number, from: number): number {
    const [bytes, length] = [this.bytes, this.bytes.length];
    let [hasQuotes, above] = [0, 0];
    for (let at = from; at + 1 < length; at++) {
      const byte = bytes[at] ?? 0;
      const behind = bytes[at + 1] ?? 0;
      above |= byte;
      if (byte === LF || (byte === CR && behind !== LF)) this.#innerLines++;
      if (byte !== QUOTE) continue;
      if (behind === QUOTE) {
        hasQuotes = 1;
        at++;
        continue;
      }
      this.starts[column] = from;
      this.ends[column] = at;
      this.hasQuotes[column] = hasQuotes;
      this.#above |= above;
      return behind === this.#delimiter || behind === LF || behind === CR ? at + 1 : UNUSUAL;
    }
    return PART;
  }
}
