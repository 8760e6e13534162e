import { columnsOfFields, csvHeader, csvLine, MOST_COLUMNS, SAMPLED_ROWS } from '../rows/csv-cell.ts';
import type { Format } from '../rows/formats.ts';
import { clipped } from '../terminal/text.ts';
import { Refused } from './retry.ts';

const LF = 0x0a;
const COMMA = 0x2c;
const QUOTE = '"';
const MIB = 1024 * 1024;
/** The maximum size of the sampled rows, in bytes. They wait in memory until the columns are known. */
const MOST_SAMPLED = 64 * MIB;

type Bytes = AsyncIterable<Buffer>;

/**
 * Converts proved rows from NDJSON to the requested format. `fields` are the fields that the URL asks for,
 * null for all.
 */
export function formatted(rows: Bytes, format: Format, fields: readonly string[] | null): Bytes {
  switch (format) {
    case 'ndjson':
      return rows;
    case 'json':
      return asArray(rows);
    case 'csv':
      return asTable(rows, fields && columnsOfFields(fields));
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
): AsyncGenerator<Buffer, void, undefined> {
  const lines = linesOf(rows);
  try {
    const sample = given ? [] : await sampleOf(lines);
    const columns = given ?? columnsFound(sample);
    yield Buffer.from(csvHeader(columns, false));
    yield table(sample, columns);
    for await (const more of lines) yield table(more, columns);
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

function table(lines: readonly string[], columns: readonly string[]): Buffer {
  const keyColumn = columns.includes('_id') ? '_id' : 'id';
  const written = lines.map((line) =>
    understood(line, () => {
      const values = valuesOf(line, keyColumn);
      return csvLine(
        columns.map((name) => values.get(name)),
        false,
      );
    }),
  );
  return Buffer.from(written.join(''));
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

function columnsFound(lines: readonly string[]): readonly string[] {
  const columns = new Set(['id', 'category', 'price']);
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

/**
 * The top-level members of a row as the server writes it (one JSON object without whitespace between its
 * parts). Yields names and the JSON texts of the values, so that numbers keep all their digits. Throws
 * SyntaxError for a row that ends too early or too late.
 */
function* membersOf(row: string): Generator<readonly [name: string, json: string], void, undefined> {
  let at = 1; // after {
  while (row[at] === QUOTE) {
    const nameEnd = stringEnd(row, at);
    const valueEnd = endOfValue(row, nameEnd + 1); // after :
    yield [JSON.parse(row.slice(at, nameEnd)) as string, row.slice(nameEnd + 1, valueEnd)];
    at = valueEnd + 1; // after , or }
  }
  if (at < 2 || at !== row.length || row.at(-1) !== '}')
    throw new SyntaxError('the row ends too early or too late');
}

function endOfValue(text: string, at: number): number {
  const first = text[at];
  if (first === QUOTE) return stringEnd(text, at);
  if (first === '{' || first === '[') return endOfNested(text, at);
  const comma = text.indexOf(',', at);
  return comma === -1 ? text.length - 1 : comma;
}

function endOfNested(text: string, begin: number): number {
  let depth = 0;
  for (let at = begin; at < text.length; at++) {
    const character = text[at];
    if (character === QUOTE) at = stringEnd(text, at) - 1;
    else if (character === '{' || character === '[') depth++;
    else if ((character === '}' || character === ']') && --depth === 0) return at + 1;
  }
  return text.length;
}

/** The index after the closing quote of the string that begins at `at`. */
function stringEnd(text: string, at: number): number {
  for (let end = text.indexOf(QUOTE, at + 1); end !== -1; end = text.indexOf(QUOTE, end + 1)) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return end + 1;
  }
  return text.length;
}
