import type { ItemOfRow } from './cells.ts';
import { cellsOf, COMMAS, type Cell, type CsvRecord, type Dialect } from './csv-parser.ts';
import { CsvRecords } from './csv-records.ts';
import type { CsvScanner } from './direct/csv-scanner.ts';
import { BadRow, BrokenSource, sourceRow, type SourceRow } from './row.ts';

/**
 * Reads CSV (see CsvRecords). The first row is the header. `underHeader` receives it and returns what turns rows into
 * items. `at` is the line on which a row begins.
 *
 * A row whose length differs from the header's, or that has a misplaced quote, is a bad row, and reading
 * continues after it. A quote that is not closed swallows the rows after it. The reason then names the last
 * of their lines.
 */
export async function* readCsv(
  source: AsyncIterable<Buffer>,
  underHeader: (header: readonly string[]) => ItemOfRow,
  dialect = COMMAS,
): AsyncGenerator<SourceRow> {
  const rows: SourceRow[] = [];
  const records = new CsvRecords(dialect, (headerRecord) => {
    const header = headerOf(headerRecord);
    const { general, direct } = underHeader(header);
    const scanned = (record: CsvScanner): void => {
      const at = record.line;
      const item = direct?.(record);
      rows.push(item ? { at, item } : sourceRow(at, () => general(record.cells())));
    };
    const parsed = (record: CsvRecord): void => {
      rows.push(sourceRow(record.line, () => general(cellsOf(record, header.length))));
    };
    return { columns: header.length, taker: { scanned, parsed } };
  });
  for await (const chunk of source) {
    const failure = await records.push(chunk).then(
      () => null,
      (error: unknown) => ({ error }),
    );
    for (const row of rows.splice(0)) yield row;
    if (failure) throw failure.error;
  }
  await records.end();
  for (const row of rows) yield row;
  if (!records.hasBegun) throw emptyFile();
}

/** Takes the rows of a CSV file without making items. */
export interface LineTaker {
  add(cells: readonly Cell[], line: number): void;
  addScanned(record: CsvScanner): void;
  /** Whether no further row is wanted. */
  readonly areFinal: boolean;
}

/**
 * Reads the header of a CSV file, and then gives its rows to the `lines` that `underHeader` returns, without making
 * items. Rows that are not valid are left out. Resolves with what `underHeader` returned. Rejects with BrokenSource as
 * readCsv does. With `isCut`, the source may end in the middle of a row, so the last row is left out.
 */
export async function readLines<Taker extends { readonly lines: LineTaker }>(
  source: AsyncIterable<Buffer>,
  dialect: Dialect,
  isCut: boolean,
  underHeader: (header: readonly string[]) => Taker,
): Promise<Taker> {
  const found: { taker?: Taker } = {};
  const records = new CsvRecords(dialect, (headerRecord) => {
    const header = headerOf(headerRecord);
    const { lines } = (found.taker = underHeader(header));
    const add = (record: CsvRecord): void => addValid(lines, record, header.length);
    let last: CsvRecord | null = null;
    const addBefore = (record: CsvRecord): void => {
      if (last) add(last);
      last = record;
    };
    const scanned = (record: CsvScanner): void => lines.addScanned(record);
    return { columns: header.length, taker: isCut ? { parsed: addBefore } : { scanned, parsed: add } };
  });
  for await (const chunk of source) {
    await records.push(chunk);
    if (found.taker?.lines.areFinal) return found.taker;
  }
  await records.end();
  if (!found.taker) throw emptyFile();
  return found.taker;
}

function addValid(lines: LineTaker, record: CsvRecord, columns: number): void {
  try {
    lines.add(cellsOf(record, columns), record.line);
  } catch (error) {
    if (!(error instanceof BadRow)) throw error; // the import reports it when it reads the row
  }
}

function emptyFile(): BrokenSource {
  return new BrokenSource('the file is empty; a CSV file begins with a header row');
}

/** The names in a header row. Throws BrokenSource when it is not a valid row. */
export function headerOf(record: CsvRecord): readonly string[] {
  try {
    return cellsOf(record).map((cell) => cell ?? '');
  } catch (error) {
    if (!(error instanceof BadRow)) throw error;
    throw new BrokenSource(`the header row (line ${record.line}): ${error.message}`);
  }
}
