import { isUtf8 } from 'node:buffer';
import { CsvError, Parser } from 'csv-parse';
import type { ItemOfCells } from './cells.ts';
import { isWellQuoted } from './csv-quotes.ts';
import { Position, type RawRow } from './position.ts';
import { BadRow, BrokenSource, LONGEST_ROW, sourceRow, type SourceRow } from './row.ts';

const COMMA = ',';

/**
 * A record from the parser, with its position and bytes. `cells` is null when its last quote is never closed.
 */
interface CsvRecord extends RawRow {
  readonly cells: readonly string[] | null;
  /** What separates the cells. */
  readonly delimiter: string;
}

/**
 * Reads CSV (RFC 4180) with CRLF, LF or CR. A byte order mark is skipped, and blank lines are ignored. The
 * first row is the header. `underHeader` receives it and returns the function that turns rows into items.
 * `at` is the line on which a row begins.
 *
 * A row whose length differs from the header's, or that has a misplaced quote, is a bad row, and reading
 * continues after it. A quote that is not closed swallows the rows after it. The reason then names the last
 * of their lines.
 */
export async function* readCsv(
  source: AsyncIterable<Buffer>,
  underHeader: (header: readonly string[]) => ItemOfCells,
  delimiter = COMMA,
): AsyncGenerator<SourceRow> {
  let readRow: ((record: CsvRecord) => SourceRow) | undefined;
  for await (const records of parseRecords(source, delimiter)) {
    for (const record of records) {
      if (readRow) yield readRow(record);
      else readRow = rowReader(headerOf(record), underHeader);
    }
  }
  if (!readRow) throw emptyFile();
}

/** The well-formed rows of a CSV file, with their first lines. */
export interface Lines {
  readonly header: readonly string[];
  /** One array for each chunk of the source. Rows that are not valid are left out. */
  readonly rows: AsyncIterable<readonly { readonly cells: readonly string[]; readonly line: number }[]>;
}

/**
 * Reads the header of a CSV file, and then its rows without making items. Rejects with BrokenSource as readCsv does.
 * With `isCut`, the source may end in the middle of a row, so the last row is left out.
 */
export async function readLines(
  source: AsyncIterable<Buffer>,
  delimiter: string,
  isCut: boolean,
): Promise<Lines> {
  const chunks = parseRecords(source, delimiter);
  let first: readonly CsvRecord[] = [];
  while (first.length === 0) {
    const next = await chunks.next();
    if (next.done) throw emptyFile();
    first = next.value;
  }
  const [headerRecord, ...others] = first;
  if (!headerRecord) throw emptyFile();
  const header = headerOf(headerRecord);
  return { header, rows: validRows(others, chunks, header.length, isCut) };
}

async function* validRows(
  first: readonly CsvRecord[],
  chunks: AsyncGenerator<readonly CsvRecord[]>,
  columns: number,
  isCut: boolean,
): AsyncGenerator<readonly { readonly cells: readonly string[]; readonly line: number }[]> {
  let held = first;
  try {
    for await (const records of chunks) {
      if (records.length === 0) continue;
      yield valid(held, columns);
      held = records;
    }
    yield valid(isCut ? held.slice(0, -1) : held, columns);
  } finally {
    await chunks.return(undefined);
  }
}

function valid(records: readonly CsvRecord[], columns: number) {
  return records.flatMap((record) => {
    try {
      return [{ cells: cellsOf(record, columns), line: record.line }];
    } catch (error) {
      if (error instanceof BadRow) return []; // the import reports it when it reads the row
      throw error;
    }
  });
}

function emptyFile(): BrokenSource {
  return new BrokenSource('the file is empty; a CSV file begins with a header row');
}

function rowReader(
  header: readonly string[],
  underHeader: (header: readonly string[]) => ItemOfCells,
): (record: CsvRecord) => SourceRow {
  const itemOf = underHeader(header);
  return (record) => sourceRow(record.line, () => itemOf(cellsOf(record, header.length)));
}

function headerOf(record: CsvRecord): readonly string[] {
  try {
    return cellsOf(record);
  } catch (error) {
    if (!(error instanceof BadRow)) throw error;
    throw new BrokenSource(`the header row (line ${record.line}): ${error.message}`);
  }
}

/** The cells of a record. Throws BadRow when it is not a valid row, or does not have `columns` cells. */
function cellsOf(
  { cells, line, lastLine, bytes, delimiter }: CsvRecord,
  columns?: number,
): readonly string[] {
  const extent = lastLine > line ? `; the row extends to line ${lastLine}` : '';
  if (!cells) throw new BadRow(`a quote is not closed before the end of the file${extent}`);
  // The parser is set to take misplaced quotes as text. They then occur in a cell, as doubled quotes do.
  const hasQuotes = cells.some((cell) => cell.includes('"'));
  if (hasQuotes && !isWellQuoted(bytes, delimiter.charCodeAt(0)))
    throw new BadRow(`a quote is misplaced or not closed${extent}`);
  if (columns !== undefined && cells.length !== columns)
    throw new BadRow(`the row has ${cells.length} cells, but the header has ${columns}${extent}`);
  const hasReplaced = cells.some((cell) => cell.includes('\ufffd'));
  if (hasReplaced && !isUtf8(bytes)) throw new BadRow('the row is not valid UTF-8');
  return cells;
}

/** Yields one array for each chunk of the source. The array is empty when no record ended in the chunk. */
async function* parseRecords(
  source: AsyncIterable<Buffer>,
  delimiter: string,
): AsyncGenerator<readonly CsvRecord[]> {
  const position = new Position();
  const parser = new RecordParser(position, delimiter);
  let failure: Error | undefined;
  parser.on('error', (error) => (failure = error));
  for await (const chunk of source) {
    position.add(chunk);
    await feed(parser, chunk);
    if (failure) throw failure;
    yield parser.takeRecords();
    if (position.pending > LONGEST_ROW) {
      throw new BrokenSource(
        `the row on line ${position.line} is longer than 16 MB; a quote may not be closed`,
      );
    }
  }
  await finish(parser);
  yield parser.takeRecords();
  if (failure) yield [unclosed(failure, position, delimiter)];
}

/** A parser that collects the records of a chunk with their positions, bypassing the queue of the stream. */
class RecordParser extends Parser {
  readonly #position: Position;
  readonly #delimiter: string;
  #records: CsvRecord[] = [];

  constructor(position: Position, delimiter: string) {
    super({
      bom: true,
      delimiter,
      record_delimiter: ['\r\n', '\n', '\r'],
      skip_empty_lines: true,
      // cellsOf checks these where the row's bytes are known. In the parser they would end the run.
      relax_quotes: true,
      relax_column_count: true,
    });
    this.#position = position;
    this.#delimiter = delimiter;
  }

  /**
   * The library calls this with each record, and with null at the end. Its on_record hook takes twice as
   * long.
   */
  override push(cells: readonly string[] | null): boolean {
    if (cells === null) return super.push(null);
    const { line, lastLine, bytes } = this.#position.take(this.info.bytes);
    this.#records.push({ cells, line, lastLine, bytes, delimiter: this.#delimiter });
    return true;
  }

  takeRecords(): readonly CsvRecord[] {
    const records = this.#records;
    this.#records = [];
    return records;
  }
}

function unclosed(failure: Error, position: Position, delimiter: string): CsvRecord {
  if (!(failure instanceof CsvError) || failure.code !== 'CSV_QUOTE_NOT_CLOSED') throw failure;
  return { cells: null, delimiter, ...position.takeAll() };
}

/** Resolves when the parser has processed the chunk. Errors are reported by the parser's `error` event. */
function feed(parser: Parser, chunk: Buffer): Promise<void> {
  return new Promise((resolve) => {
    parser.write(chunk, () => resolve());
  });
}

function finish(parser: Parser): Promise<void> {
  return new Promise((resolve) => {
    parser.once('close', resolve);
    parser.end();
    parser.resume();
  });
}
