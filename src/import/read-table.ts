import { UsageError } from '../terminal/arguments.ts';
import { readCsv, readLines } from './csv.ts';
import type { Dialect } from './csv-scanner.ts';
import { delimiterOf, headerRow } from './delimiter.ts';
import { describeColumns, Guesses } from './guess.ts';
import { peek, readAhead } from './chunks.ts';
import type { Reading } from './reading.ts';
import { BrokenSource, type Rows } from './row.ts';
import { itemsOfTable } from './row-from-cells.ts';
import { tableOf, type Column } from './table.ts';

/** The bytes of a pipe that decide what its columns are. */
export const SAMPLE_BYTES = 16 * 1024 * 1024;

/** A header row that is longer is not looked at for its delimiter. Bytes. */
const LONGEST_HEADER = 1024 * 1024;

/** Opens the content of a file once more. */
export type Again = () => Promise<AsyncIterable<Buffer>>;

/** The columns of a file, and their kinds. */
interface Decided {
  readonly header: readonly string[];
  readonly table: readonly Column[];
  readonly lines: Guesses;
}

/**
 * Reads a CSV file. The kind of a column is decided by all of its cells before any row is read: the file is read twice,
 * by `again`. Without it (a pipe), the first 16 MiB decide, and a later row with another kind of cell is a bad row.
 *
 * Rejects with UsageError when the command does not fit the header, and with BrokenSource when the file cannot be read.
 */
export async function readTable(
  content: AsyncIterable<Buffer>,
  reading: Reading,
  again: Again | null,
): Promise<Rows> {
  const { head, bytes } = await peek(
    content,
    (seen) => seen.length > LONGEST_HEADER || headerRow(seen) !== null,
  );
  const delimiter = reading.delimiter ?? delimiterOf(headerRow(head) ?? head);
  const dialect = { delimiter, missing: reading.missing ?? [] };
  const first = again === null ? await readAhead(bytes, SAMPLE_BYTES) : null;
  const decided = first
    ? await decide(from(first.chunks), dialect, reading, first.isCut)
    : await decide((await again?.()) ?? bytes, dialect, reading, false);
  const { table } = decided;
  const guesses = decided.lines.take();
  const underHeader = (header: readonly string[]) => {
    if (header.join('\0') === decided.header.join('\0'))
      return itemsOfTable(table, guesses, reading.hasDecimalComma);
    throw new BrokenSource('the file changed between the two times that it was read');
  };
  return {
    unit: 'line',
    rows: readCsv(first?.bytes ?? bytes, underHeader, dialect),
    describe: () => ['columns:', ...describeColumns(table, guesses, reading.hasDecimalComma)],
  };
}

function decide(
  content: AsyncIterable<Buffer>,
  dialect: Dialect,
  reading: Reading,
  isCut: boolean,
): Promise<Decided> {
  return readLines(content, dialect, isCut, (header) => {
    const table = tableUnder(header, dialect.delimiter, reading);
    return { header, table, lines: new Guesses(table, reading.hasDecimalComma) };
  });
}

/** The table under a header. A wrong delimiter shows as a column that is missing. */
function tableUnder(
  header: readonly string[],
  delimiter: string,
  { columns, types, into, names = new Map(), isFlat = false }: Reading,
): readonly Column[] {
  try {
    const named = header.map((name, index) => names.get(index + 1) ?? name);
    for (const number of names.keys())
      if (number > header.length)
        throw new UsageError(`--name ${number}=...: the header row has ${header.length} columns`);
    return tableOf(named, { ...columns, isFlat }, types, into?.indexes.flat());
  } catch (error) {
    if (!(error instanceof UsageError) || header.length > 1) throw error;
    const shown = delimiter === '\t' ? 'a tab' : delimiter;
    throw new UsageError(`${error.message} (separated by ${shown}; --delimiter names another character)`);
  }
}

// eslint-disable-next-line @typescript-eslint/require-await -- a source is asynchronous; this one has nothing to wait for
async function* from(chunks: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks;
}
