import { CsvParser, type CsvRecord, type Dialect } from './csv-parser.ts';
import { CsvScanner } from './direct/csv-scanner.ts';

/** A record of more bytes is left to the parser: the scanner would begin anew with each chunk. */
const LONGEST_PART = 1024 * 1024;

/** Takes the records under a header, in their order. */
export interface RecordTaker {
  /** The record that the scanner has found. Valid until the next one. Absent: the parser finds every record. */
  readonly scanned?: (record: CsvScanner) => void;
  /** A record from the parser, which may not be a valid row. */
  readonly parsed: (record: CsvRecord) => void;
}

/** Returns what takes the records under a header, and the number of its cells. */
export type UnderHeader = (header: CsvRecord) => { readonly taker: RecordTaker; readonly columns: number };

/**
 * Reads the records of CSV (RFC 4180) with CRLF, LF or CR. Blank lines are ignored.
 *
 * The csv-parse library decides what a record is. It takes longer than all other work of an import, so a scanner finds
 * the records that are certainly valid. The parser reads the header, and each record that the scanner leaves to it.
 */
export class CsvRecords {
  readonly #dialect: Dialect;
  readonly #underHeader: UnderHeader;
  #taker: RecordTaker | null = null;
  #scanner: CsvScanner | null = null;
  /** Present: it has begun to read a record. */
  #parser: CsvParser | null;
  /** Bytes that belong to no record so far, while there is no parser. */
  #rest: Buffer = Buffer.alloc(0);

  constructor(dialect: Dialect, underHeader: UnderHeader) {
    this.#dialect = dialect;
    this.#underHeader = underHeader;
    this.#parser = new CsvParser(dialect, 1);
  }

  /** Whether the header was found. */
  get hasBegun(): boolean {
    return this.#taker !== null;
  }

  /** Takes the records that end in a chunk. */
  async push(chunk: Buffer): Promise<void> {
    if (this.#parser) return this.#parse(this.#parser, chunk);
    const scanner = this.#scanner;
    if (!scanner) throw new Error('a file without a scanner keeps its parser');
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    scanner.begin(bytes);
    let found = scanner.scan();
    for (; found === 'record'; found = scanner.scan()) this.#taker?.scanned?.(scanner);
    this.#rest = bytes.subarray(scanner.next);
    if (found === 'unusual' || this.#rest.length > LONGEST_PART) await this.#parseRest(scanner.nextLine);
  }

  /** Takes the records that the end of the source completes. */
  async end(): Promise<void> {
    this.#parser ??= new CsvParser(this.#dialect, this.#scanner?.nextLine ?? 1);
    if (this.#rest.length > 0) this.#take(await this.#parser.push(this.#rest));
    this.#take(await this.#parser.end());
  }

  async #parseRest(line: number): Promise<void> {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    await this.#parse((this.#parser = new CsvParser(this.#dialect, line)), rest);
  }

  /** Parses a chunk. Once records were found, the scanner goes on behind them. */
  async #parse(parser: CsvParser, chunk: Buffer): Promise<void> {
    const records = await parser.push(chunk);
    this.#take(records);
    if (records.length === 0 || !this.#scanner) return;
    this.#rest = parser.takeRest();
    this.#scanner.nextLine = parser.line;
    this.#parser = null;
  }

  #take(records: readonly CsvRecord[]): void {
    for (const record of records) {
      if (this.#taker) {
        this.#taker.parsed(record);
        continue;
      }
      const { taker, columns } = this.#underHeader(record);
      this.#taker = taker;
      // The line is set when the scanner begins.
      if (taker.scanned) this.#scanner = new CsvScanner(columns, this.#dialect, 1);
    }
  }
}
