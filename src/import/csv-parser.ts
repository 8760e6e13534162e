import { isUtf8 } from 'node:buffer';
import { CsvError, Parser } from 'csv-parse';
import { isWellQuoted } from './csv-quotes.ts';
import { Position, type RawRow } from './position.ts';
import { BadRow, BrokenSource, LONGEST_ROW } from './row.ts';

/**
 * A record from the parser, with its position and bytes. `cells` is null when its last quote is never closed.
 */
export interface CsvRecord extends RawRow {
  readonly cells: readonly Cell[] | null;
  /** What separates the cells. */
  readonly delimiter: string;
}

/** How the cells of a CSV file are written. */
export interface Dialect {
  /** What separates the cells. */
  readonly delimiter: string;
  /** Texts that stand for no value in cells without quotes. An empty cell always does. */
  readonly missing: readonly string[];
}

/** As RFC 4180 writes CSV. */
export const COMMAS: Dialect = { delimiter: ',', missing: [] };

/** The text of a cell. null: it has no value. `""` is an empty text, and a cell without quotes and text has no value. */
export type Cell = string | null;

/** The cells of a record. Throws BadRow when it is not a valid row, or does not have `columns` cells. */
export function cellsOf(
  { cells, line, lastLine, bytes, delimiter }: CsvRecord,
  columns?: number,
): readonly Cell[] {
  const extent = lastLine > line ? `; the row extends to line ${lastLine}` : '';
  if (!cells) throw new BadRow(`a quote is not closed before the end of the file${extent}`);
  // The parser is set to take misplaced quotes as text. They then occur in a cell, as doubled quotes do.
  const hasQuotes = cells.some((cell) => cell?.includes('"'));
  if (hasQuotes && !isWellQuoted(bytes, delimiter.charCodeAt(0)))
    throw new BadRow(`a quote is misplaced or not closed${extent}`);
  if (columns !== undefined && cells.length !== columns)
    throw new BadRow(`the row has ${cells.length} cells, but the header has ${columns}${extent}`);
  const hasReplaced = cells.some((cell) => cell?.includes('\ufffd'));
  if (hasReplaced && !isUtf8(bytes)) throw new BadRow('the row is not valid UTF-8');
  return cells;
}

/** Parses CSV from the beginning of some record on. */
export class CsvParser {
  readonly #parser: RecordParser;
  readonly #position: Position;
  readonly #delimiter: string;
  #failure: Error | null = null;

  /** `line`: the line on which the first record begins. */
  constructor(dialect: Dialect, line: number) {
    this.#delimiter = dialect.delimiter;
    this.#position = new Position(line);
    this.#parser = new RecordParser(this.#position, dialect);
    this.#parser.on('error', (error) => (this.#failure = error));
  }

  /** The line on which the next record begins, including blank lines before it. */
  get line(): number {
    return this.#position.line;
  }

  /** Resolves with the records that end in the chunk. Rejects with BrokenSource when a record is too long. */
  async push(chunk: Buffer): Promise<readonly CsvRecord[]> {
    this.#position.add(chunk);
    await feed(this.#parser, chunk);
    if (this.#failure) throw this.#failure;
    const records = this.#parser.takeRecords();
    if (records.length === 0 && this.#position.pending > LONGEST_ROW) {
      throw new BrokenSource(
        `the row on line ${this.#position.line} is longer than 16 MB; a quote may not be closed`,
      );
    }
    return records;
  }

  /** The bytes that belong to no record so far. The parser cannot go on then. */
  takeRest(): Buffer {
    return this.#position.takeRest();
  }

  /** Resolves with the records that the end of the source completes. */
  async end(): Promise<readonly CsvRecord[]> {
    await finish(this.#parser);
    const records = this.#parser.takeRecords();
    return this.#failure ? [...records, this.#unclosed(this.#failure)] : records;
  }

  #unclosed(failure: Error): CsvRecord {
    if (!(failure instanceof CsvError) || failure.code !== 'CSV_QUOTE_NOT_CLOSED') throw failure;
    return { cells: null, delimiter: this.#delimiter, ...this.#position.takeAll() };
  }
}

/** A parser that collects the records of a chunk with their positions, bypassing the queue of the stream. */
class RecordParser extends Parser {
  readonly #position: Position;
  readonly #delimiter: string;
  #records: CsvRecord[] = [];

  constructor(position: Position, { delimiter, missing }: Dialect) {
    super({
      delimiter,
      record_delimiter: ['\r\n', '\n', '\r'],
      skip_empty_lines: true,
      // cellsOf checks these where the row's bytes are known. In the parser they would end the run.
      relax_quotes: true,
      relax_column_count: true,
      cast: (cell, { quoting }) => (!quoting && (cell === '' || missing.includes(cell)) ? null : cell),
    });
    this.#position = position;
    this.#delimiter = delimiter;
  }

  /**
   * The library calls this with each record, and with null at the end. Its on_record hook takes twice as
   * long.
   */
  override push(cells: readonly Cell[] | null): boolean {
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
