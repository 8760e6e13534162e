import { isUtf8 } from 'node:buffer';
import { CsvError, Parser } from 'csv-parse';
import type { ItemOfCells } from './cells.ts';
import { Position, type Place } from './position.ts';
import { wellQuoted } from './quotes.ts';
import { BadRow, BrokenSource, LONGEST_ROW, type SourceRow } from './row.ts';

/**
 * A record from the parser, with its position and bytes. `cells` is null when its last quote is never closed.
 */
interface RawRecord extends Place {
  readonly cells: readonly string[] | null;
}

/**
 * Reads CSV (RFC 4180) with CRLF, LF or CR. A byte order mark is skipped, and blank lines are ignored. The
 * first row is the header. `underHeader` receives it and returns the function that turns rows into items.
 * `at` is the line on which a row begins.
 *
 * A row whose length differs from the header's, or that has a misplaced quote, is a bad row, and reading
 * continues after it. A quote that is not closed swallows the rows behind it. The reason then says up to
 * which line.
 */
export async function* readCsv(
  source: AsyncIterable<Buffer>,
  underHeader: (header: readonly string[]) => ItemOfCells,
): AsyncGenerator<SourceRow> {
  let columns = 0;
  let toItem: ItemOfCells | undefined;
  for await (const records of parseRecords(source)) {
    for (const record of records) {
      if (toItem) {
        yield rowOf(record, columns, toItem);
      } else {
        const header = headerOf(record);
        columns = header.length;
        toItem = underHeader(header);
      }
    }
  }
  if (!toItem) throw new BrokenSource('the file is empty; a CSV file begins with a header row');
}

function headerOf(record: RawRecord): readonly string[] {
  const fault = faultOf(record);
  if (fault !== null || !record.cells) {
    throw new BrokenSource(`the header row (line ${record.line}): ${fault ?? 'it has no cells'}`);
  }
  return record.cells;
}

function rowOf(record: RawRecord, columns: number, toItem: ItemOfCells): SourceRow {
  const at = record.line;
  const fault = faultOf(record, columns);
  if (fault !== null || !record.cells) return { at, problem: fault ?? 'it has no cells' };
  try {
    return { at, item: toItem(record.cells) };
  } catch (error) {
    if (error instanceof BadRow) return { at, problem: error.message };
    throw error;
  }
}

/** The reason why a record is not a valid row. null when it is valid. */
function faultOf(record: RawRecord, columns?: number): string | null {
  const { cells, line, lastLine } = record;
  const reach = lastLine > line ? `; it reaches to line ${lastLine}` : '';
  if (!cells) return `a quote is not closed before the end of the file${reach}`;
  // The parser is set to take misplaced quotes as text. They then occur in a cell, as doubled quotes do.
  const quotes = cells.some((cell) => cell.includes('"'));
  if (quotes && !wellQuoted(record.bytes)) return `a quote is misplaced or not closed${reach}`;
  if (columns !== undefined && cells.length !== columns) {
    return `it has ${cells.length} cells, the header has ${columns}${reach}`;
  }
  const replaced = cells.some((cell) => cell.includes('\ufffd'));
  return replaced && !isUtf8(record.bytes) ? 'it is not valid UTF-8' : null;
}

/** Yields one array for each chunk of the source. The array is empty when no record ended in the chunk. */
async function* parseRecords(source: AsyncIterable<Buffer>): AsyncGenerator<readonly RawRecord[]> {
  const position = new Position();
  const parser = new RecordParser(position);
  let failure: Error | undefined;
  parser.on('error', (error) => (failure = error));
  for await (const chunk of source) {
    position.add(chunk);
    await feed(parser, chunk);
    if (failure) throw failure;
    yield parser.takeRecords();
    if (position.pending > LONGEST_ROW) {
      throw new BrokenSource(`the row on line ${position.line} is longer than 16 MB: is a quote not closed?`);
    }
  }
  await finish(parser);
  yield parser.takeRecords();
  if (failure) yield [unclosed(failure, position)];
}

/** A parser that collects the records of a chunk with their positions, bypassing the queue of the stream. */
class RecordParser extends Parser {
  readonly #position: Position;
  #records: RawRecord[] = [];

  constructor(position: Position) {
    super({
      bom: true,
      record_delimiter: ['\r\n', '\n', '\r'],
      skip_empty_lines: true,
      // faultOf checks these where the row's bytes are known. In the parser they would end the run.
      relax_quotes: true,
      relax_column_count: true,
    });
    this.#position = position;
  }

  /**
   * The library calls this with each record, and with null at the end. Its on_record hook takes twice as
   * long.
   */
  override push(cells: readonly string[] | null): boolean {
    if (cells === null) return super.push(null);
    const { line, lastLine, bytes } = this.#position.take(this.info.bytes);
    this.#records.push({ cells, line, lastLine, bytes });
    return true;
  }

  takeRecords(): readonly RawRecord[] {
    const records = this.#records;
    this.#records = [];
    return records;
  }
}

function unclosed(failure: Error, position: Position): RawRecord {
  if (!(failure instanceof CsvError) || failure.code !== 'CSV_QUOTE_NOT_CLOSED') throw failure;
  return { cells: null, ...position.takeAll() };
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
