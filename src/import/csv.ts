import { foundInPieces, type Piece } from './chunks.ts';
import { CsvScanner, type CsvRecord, type Dialect } from './csv-scanner.ts';
import { BadRow, BrokenSource, type SourceRows, type SourceRow } from './row.ts';

/** As RFC 4180 writes CSV. */
export const COMMAS: Dialect = { delimiter: ',', missing: [] };

/** Makes the item of a record, as BSON. Throws BadRow when the row cannot become an item. */
export type RowOfRecord = (record: CsvRecord) => Uint8Array;

/** Receives the first row, the header, and returns what is done with each record under it. */
type UnderHeader<T> = (header: readonly string[]) => (record: CsvRecord) => T;

/**
 * Reads CSV (see CsvScanner). `underHeader` receives the first row, the header, and returns what turns rows into items. `at`
 * is the line on which a row begins. With `isCut`, a row without a line end is left out. A quote that is not closed swallows
 * the rows after it: the reason then names the last of their lines.
 */
export function readCsv<T>(
  source: AsyncIterable<Buffer>,
  underHeader: UnderHeader<T>,
  dialect = COMMAS,
  isCut = false,
): SourceRows<T> {
  return foundInPieces<SourceRow<T>>(
    source,
    recordsUnder(underHeader, dialect, isCut, (record, makeRow, rows) => {
      rows.push(rowOf(record, makeRow));
      return true;
    }),
  );
}

/**
 * Reads the same, and makes nothing of it: shows the valid records to what `underHeader` returns, until that returns false.
 * Rejects as readCsv does.
 */
export async function lookThroughCsv(
  source: AsyncIterable<Buffer>,
  underHeader: UnderHeader<boolean>,
  dialect = COMMAS,
  isCut = false,
): Promise<void> {
  const read = recordsUnder<boolean, CsvRecord>(underHeader, dialect, isCut, (record, see, ends) => {
    if (record.fault !== null || see(record)) return true;
    ends.push(record);
    return false;
  });
  for await (const _ of foundInPieces(source, read)) return;
}

/** Returns what reads a piece of CSV. It gives the records under the header to `found` until that returns false. */
function recordsUnder<T, Found>(
  underHeader: UnderHeader<T>,
  dialect: Dialect,
  isCut: boolean,
  take: (record: CsvRecord, underHeader: (record: CsvRecord) => T, found: Found[]) => boolean,
): (piece: Piece, found: Found[]) => void {
  const scanner = new CsvScanner(dialect);
  let isUnder: ((record: CsvRecord) => T) | null = null;
  return (piece, found) => {
    scanner.begin(piece.bytes, piece.isLast && !isCut);
    while (scanner.next())
      if (!isUnder) isUnder = underHeader(headerOf(scanner));
      else if (!take(scanner, isUnder, found)) return;
    piece.rest = scanner.end();
    if (!isUnder && piece.isLast)
      throw new BrokenSource('the file is empty; a CSV file begins with a header row');
  };
}

function rowOf<T>(record: CsvRecord, makeRow: (record: CsvRecord) => T): SourceRow<T> {
  const at = record.line;
  if (record.fault !== null) return { at, problem: record.fault };
  try {
    return { at, item: makeRow(record) };
  } catch (error) {
    if (error instanceof BadRow) return { at, problem: error.message, of: error.of };
    throw error;
  }
}

/** The names in a header row. Throws BrokenSource when it is not a valid row. */
function headerOf(record: CsvRecord): readonly string[] {
  if (record.fault !== null) throw new BrokenSource(`the header row (line ${record.line}): ${record.fault}`);
  return Array.from({ length: record.cells }, (_, column) => record.text(column));
}
