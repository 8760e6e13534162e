/**
 * The columns and cells of CSV (RFC 4180) in the contract's form. The wasm transcoder writes the same byte for byte:
 *
 * - Text is written as it is. It is quoted, with its own quotes doubled, when it contains a comma, quote, CR or LF, or
 *   is empty.
 * - Numbers, booleans, dates, ids and base64 are written as in JSON, without quotes.
 * - Objects, arrays and Extended JSON are written as JSON text in quotes.
 * - A cell is empty where the JSON has null, or the row has no such field.
 *
 * `safe` puts an apostrophe before text that begins with = + - @ (also those of full width), TAB, CR or LF, so that no
 * spreadsheet takes it for a formula (https://owasp.org/www-community/attacks/CSV_Injection). Numbers stay numbers.
 */
import { uncovered } from './selection.ts';

const LINE_END = '\r\n';

/** The number of rows that are sampled for the columns of a table without `fields`, and its maximum number of columns. */
export const SAMPLED_ROWS = 1_000;
export const MOST_COLUMNS = 1_000;

/**
 * The columns of fields in the order asked for. One below another has no column of its own. A cell has the value at the
 * end of the path; where the path leads to an array, the array, and of its elements what the rest of the path selects.
 * With `_id`, that is the key, and `id` is the rows' own field. Otherwise the key is `id`, first unless it was asked
 * for. Only the names decide, so the pieces of a set can be joined.
 */
export function columnsOfFields(fields: readonly string[]): readonly string[] {
  const names = uncovered(fields);
  return names.includes('_id') || names.includes('id') ? names : ['id', ...names];
}

/** How cells are separated, and numbers written. A cell with its separator is quoted, and one with a comma always. */
export interface TableNotation {
  readonly separator: ',' | ';';
  readonly hasDecimalComma: boolean;
}

export const POINTS: TableNotation = { separator: ',', hasDecimalComma: false };
export const COMMAS: TableNotation = { separator: ';', hasDecimalComma: true };

export function csvHeader(
  columns: readonly string[],
  safe: boolean,
  { separator }: TableNotation = POINTS,
): string {
  return columns.map((name) => textCell(name, safe, separator)).join(separator) + LINE_END;
}

/**
 * The names under which a row stores its columns. `id` is the key, which is stored as `_id`, and the path `id.a` is a
 * part of it. In a table with a column `_id`, that column is the key of every row, and `id` is the rows' own field.
 */
export function storedNames(columns: readonly string[], arePaths: boolean): readonly string[] {
  if (columns.includes('_id')) return columns;
  const isOfKey = (name: string) => name === 'id' || (arePaths && name.startsWith('id.'));
  return columns.map((name) => (isOfKey(name) ? `_${name}` : name));
}

function textCell(text: string, safe: boolean, separator: string): string {
  const harmless = safe && /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text;
  return text === '' || /[",\r\n]/.test(text) || text.includes(separator) ? quoted(harmless) : harmless;
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
