import { COMMAS, CsvScanner, type Dialect } from './csv-scanner.ts';
import { BrokenSource, LONGEST_ROW, sourceRow, type SourceRow } from './row.ts';

/** Makes the item of the record that a scanner has found, as BSON. Throws BadRow when the row cannot become an item. */
export type ItemOfRecord = (record: CsvScanner) => Uint8Array;

/**
 * Reads CSV (see CsvScanner). The first row is the header. `underHeader` receives it and returns what turns rows into
 * items. `at` is the line on which a row begins.
 *
 * A row whose length differs from the header's, or that has a misplaced quote, is a bad row, and reading
 * continues after it. A quote that is not closed swallows the rows after it. The reason then names the last
 * of their lines.
 */
export async function* readCsv(
  source: AsyncIterable<Buffer>,
  underHeader: (header: readonly string[]) => ItemOfRecord,
  dialect = COMMAS,
): AsyncGenerator<SourceRow> {
  const records = new CsvRecords(dialect);
  let itemOf: ItemOfRecord | null = null;
  for await (const chunk of withEnd(source)) {
    for (const record of records.read(chunk)) {
      if (itemOf) yield rowOf(record, itemOf);
      else itemOf = underHeader(headerOf(record));
    }
  }
  if (!itemOf) throw emptyFile();
}

function rowOf(record: CsvScanner, itemOf: ItemOfRecord): SourceRow {
  if (record.fault !== null) return { at: record.line, problem: record.fault };
  return sourceRow(record.line, () => itemOf(record));
}

/** Takes the rows of a CSV file without making items. */
export interface RecordTaker {
  add(record: CsvScanner): void;
  /** Whether no further row is wanted. */
  readonly areFinal: boolean;
}

/**
 * Reads the header of a CSV file, and then gives its rows to the `lines` that `underHeader` returns, without making
 * items. Rows that are not valid are left out: the import reports them when it reads them. Resolves with what
 * `underHeader` returned. Rejects with BrokenSource as readCsv does. With `isCut`, the source may end in the middle of a
 * row, so a row without a line end is left out.
 */
export async function readLines<Taker extends { readonly lines: RecordTaker }>(
  source: AsyncIterable<Buffer>,
  dialect: Dialect,
  isCut: boolean,
  underHeader: (header: readonly string[]) => Taker,
): Promise<Taker> {
  const records = new CsvRecords(dialect);
  let taker = null as Taker | null;
  for await (const chunk of isCut ? source : withEnd(source)) {
    for (const record of records.read(chunk)) {
      if (!taker) taker = underHeader(headerOf(record));
      else if (record.fault === null) taker.lines.add(record);
    }
    if (taker?.lines.areFinal) return taker;
  }
  if (!taker) throw emptyFile();
  return taker;
}

/** Finds the records in chunks of bytes, the header first. */
class CsvRecords {
  readonly #scanner: CsvScanner;
  /** The bytes that belong to no record so far, and the number of them that is to be scanned next. */
  #parts: Buffer[] = [];
  #length = 0;
  #wanted = 0;

  constructor(dialect: Dialect) {
    this.#scanner = new CsvScanner(dialect);
  }

  /** Yields the scanner for each record that ends in the chunk, or with the source when the chunk is null. */
  *read(chunk: Buffer | null): Generator<CsvScanner> {
    if (chunk) this.#parts.push(chunk);
    this.#length += chunk?.length ?? 0;
    if (chunk && this.#length < this.#wanted && this.#length <= LONGEST_ROW) return;
    const [only] = this.#parts;
    const bytes = only && this.#parts.length === 1 ? only : Buffer.concat(this.#parts);
    const scanner = this.#scanner;
    scanner.begin(bytes);
    while (scanner.scan(chunk === null)) {
      yield scanner;
      scanner.columns ??= scanner.cells;
    }
    const rest = bytes.subarray(scanner.next);
    if (rest.length > LONGEST_ROW)
      throw new BrokenSource(
        `the row on line ${scanner.nextLine} is longer than 16 MB; a quote may not be closed`,
      );
    this.#parts = [rest];
    this.#length = rest.length;
    this.#wanted = 2 * rest.length; // a long record is not scanned anew with each chunk
  }
}

/** The chunks, and null behind them. */
async function* withEnd(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer | null> {
  yield* source;
  yield null;
}

function emptyFile(): BrokenSource {
  return new BrokenSource('the file is empty; a CSV file begins with a header row');
}

/** The names in a header row. Throws BrokenSource when it is not a valid row. */
function headerOf(record: CsvScanner): readonly string[] {
  if (record.fault !== null) throw new BrokenSource(`the header row (line ${record.line}): ${record.fault}`);
  return Array.from({ length: record.cells }, (_, column) => record.text(column));
}
