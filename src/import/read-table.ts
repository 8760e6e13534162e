import { Readable } from 'node:stream';
import { rowsOfTable } from './row-from-cells.ts';
import { RowWriter } from './row-writer.ts';
import { takeWhile } from './chunks.ts';
import { lookThroughCsv, readCsv } from './csv.ts';
import type { Reading } from './arguments.ts';
import { BrokenSource, type Rows } from './row.ts';
import {
  columnsUnder,
  described,
  guessing,
  namedHeader,
  readAsStored,
  warnings,
  type Column,
  type KindsAt,
} from './column.ts';
import { refuseTitle, type TableStart } from './table-start.ts';
import { checkIndexes } from './target.ts';

/** The bytes of a pipe that decide what its columns are. */
export const SAMPLE_BYTES = 16 * 1024 * 1024;

/** Opens the content of a file once more. */
export type Reopen = () => Promise<AsyncIterable<Buffer>>;

/**
 * Reads a CSV file from its header row on. The kind of a column is decided by all of its cells before any row is read: the
 * file is read twice, by `again`. Without it (a pipe), the first 16 MiB decide, and a later row with another kind of cell is a bad row.
 *
 * Rejects with UsageError when the command does not fit the header, and with BrokenSource when the file cannot be read.
 */
export async function readTable(
  content: AsyncIterable<Buffer>,
  start: TableStart,
  reading: Reading,
  again: Reopen | null,
  kindsAt?: KindsAt,
): Promise<Rows> {
  const { delimiter, lines } = start;
  const dialect = { delimiter, missing: reading.missing ?? [], line: lines + 1 };
  const sample = again ? null : await takeWhile(content, (chunks) => sizeOf(chunks) < SAMPLE_BYTES);
  const scanned = again ? await again() : Readable.from(sample?.taken ?? []);
  let names = '';
  let table: readonly Column[] = [];
  const look = (row: readonly string[]) => {
    names = row.join('\0');
    const header = namedHeader(row, reading);
    if (reading.skippedLines !== 0) refuseTitle(header, start, reading.skippedLines === undefined);
    table = columnsUnder(header, reading);
    return guessing(table, reading);
  };
  // Rows that are not valid are left out: the import reports them when it reads them.
  await lookThroughCsv(scanned, look, dialect, sample?.isCut);
  if (kindsAt) table = await readAsStored(table, kindsAt);
  if (reading.into) {
    const fields = table.flatMap(({ path, kind }) => (path && kind ? [path.join('.')] : []));
    checkIndexes(reading.into, fields, 'no row');
  }
  const writer = new RowWriter(reading.columns);
  const underHeader = (header: readonly string[]) => {
    if (header.join('\0') !== names)
      throw new BrokenSource('the file changed between the two times that it was read');
    return rowsOfTable(table, reading, writer);
  };
  return {
    unit: 'line',
    rows: readCsv(sample?.all ?? content, underHeader, dialect),
    withoutKey: () => writer.newKeys,
    warnings: warnings(table, reading),
    describe: () => described(table),
  };
}

function sizeOf(chunks: readonly Buffer[]): number {
  return chunks.reduce((sum, { length }) => sum + length, 0);
}
