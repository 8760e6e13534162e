import {
  columnsOfFields,
  csvHeader,
  csvLine,
  MOST_COLUMNS,
  SAMPLED_ROWS,
  storedNames,
} from '../rows/csv-cell.ts';
import type { TextFormat } from '../rows/formats.ts';
import { clipped } from '../terminal/text.ts';
import { membersOf, valueAt } from './json-text.ts';
import { Refused } from './retry.ts';

const LF = 0x0a;
const COMMA = 0x2c;
const MIB = 1024 * 1024;
/** The maximum size of the sampled rows, in bytes. They wait in memory until the columns are known. */
const MOST_SAMPLED = 64 * MIB;

type Bytes = AsyncIterable<Buffer>;

/** The form of an output. */
export interface Form {
  readonly format: TextFormat;
  /** The fields that the URL asks for. null for all fields. */
  readonly fields: readonly string[] | null;
  /** The columns that a table of all fields begins with. */
  readonly first: readonly string[];
}

/** Converts proved rows from NDJSON to the requested form. */
export function formatted(rows: Bytes, { format, fields, first }: Form): Bytes {
  switch (format) {
    case 'ndjson':
      return rows;
    case 'json':
      return asArray(rows);
    case 'csv':
      return asTable(rows, fields && columnsOfFields(fields), first);
  }
}

/** In NDJSON an LF occurs only at the end of a row. Every LF but the last becomes a comma. */
async function* asArray(rows: Bytes): AsyncGenerator<Buffer, void, undefined> {
  let before = '[';
  for await (const chunk of rows) {
    if (chunk.length === 0) continue;
    const endsRow = chunk[chunk.length - 1] === LF;
    const array = Buffer.from(endsRow ? chunk.subarray(0, -1) : chunk);
    for (let at = array.indexOf(LF); at !== -1; at = array.indexOf(LF, at + 1)) array[at] = COMMA;
    yield Buffer.from(before);
    yield array;
    before = endsRow ? ',' : '';
  }
  yield Buffer.from(`${before === '[' ? '[' : ''}]\n`);
}

async function* asTable(
  rows: Bytes,
  given: readonly string[] | null,
  first: readonly string[],
): AsyncGenerator<Buffer, void, undefined> {
  const lines = linesOf(rows);
  try {
    const sample = given ? [] : await sampleOf(lines);
    const columns = given ?? columnsFound(sample, first);
    const cellsOf = given ? cellsByPath(given) : cellsByName(columns);
    yield Buffer.from(csvHeader(columns, false));
    yield table(sample, cellsOf);
    for await (const more of lines) yield table(more, cellsOf);
  } finally {
    await lines.return();
  }
}

/** The first rows, which determine the columns. Throws Refused when they are too long to keep in memory. */
async function sampleOf(lines: AsyncGenerator<string[], void, undefined>): Promise<string[]> {
  let sample: string[] = [];
  let length = 0;
  for (let next = await lines.next(); !next.done; next = await lines.next()) {
    sample = [...sample, ...next.value];
    if (sample.length >= SAMPLED_ROWS) break;
    length += next.value.reduce((sum, line) => sum + line.length, 0);
    if (length > MOST_SAMPLED)
      throw new Refused(
        `the rows that determine the columns have more than ${MOST_SAMPLED / MIB} MiB: name the columns with fields= in the URL`,
      );
  }
  return sample;
}

async function* linesOf(rows: Bytes): AsyncGenerator<string[], void, undefined> {
  let begun: Buffer[] = [];
  for await (const chunk of rows) {
    const end = chunk.lastIndexOf(LF);
    begun.push(end === -1 ? chunk : chunk.subarray(0, end));
    if (end === -1) continue;
    yield Buffer.concat(begun).toString().split('\n');
    begun = [chunk.subarray(end + 1)];
  }
}

/** Returns the JSON texts of a row's values in each column. undefined: the row has no such value. */
type CellsOf = (line: string) => readonly (string | undefined)[];

function table(lines: readonly string[], cellsOf: CellsOf): Buffer {
  const written = lines.map((line) => understood(line, () => csvLine(cellsOf(line), false)));
  return Buffer.from(written.join(''));
}

function cellsByName(columns: readonly string[]): CellsOf {
  const keyColumn = columns.includes('_id') ? '_id' : 'id';
  return (line) => {
    const values = valuesOf(line, keyColumn);
    return columns.map((name) => values.get(name));
  };
}

/** The columns are the fields that the URL asks for. A field with dots is also a path, as on the server. */
function cellsByPath(columns: readonly string[]): CellsOf {
  if (!columns.some((column) => column.includes('.'))) return cellsByName(columns);
  const paths = storedNames(columns, true);
  return (line) => {
    const [key, ...others] = [...membersOf(line)];
    const stored = key ? ([['_id', key[1]], ...others] as const) : []; // whatever its name in this row
    return paths.map((path) => valueAt(stored, path));
  };
}

/** Calls `read`. Throws Refused when the row cannot be parsed. */
function understood<T>(row: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const beginning = clipped(row);
    throw new Refused(`a row is not in the form that the server writes: ${beginning}`, { cause: error });
  }
}

/**
 * The values of a row by their columns. When a name occurs twice, the first value is used, as on the server.
 */
function valuesOf(line: string, keyColumn: '_id' | 'id'): Map<string, string> {
  const values = new Map<string, string>();
  let column: string | null = keyColumn; // the key is the first member, whatever its name
  for (const [name, json] of membersOf(line)) {
    column ??= name;
    if (!values.has(column)) values.set(column, json);
    column = null;
  }
  return values;
}

function columnsFound(lines: readonly string[], first: readonly string[]): readonly string[] {
  const columns = new Set(first);
  let hasOwnId = false;
  for (const line of lines.slice(0, SAMPLED_ROWS)) {
    for (const [name] of understood(line, () => [...membersOf(line)])) {
      if (name === '_id')
        hasOwnId = true; // the key's name when the row has a field `id` of its own
      else if (columns.size < MOST_COLUMNS) columns.add(name);
    }
  }
  return hasOwnId ? ['_id', ...columns] : [...columns];
}
