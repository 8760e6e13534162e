import type { RowKey } from './edition/copy-edition.ts';

/** What SQLite cuts a text at, and what UTF-8 does not have. */
const NO_TEXT = /[\0\p{Cs}]/u;
/** Texts, and what separates values. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[,[\]{}]/g;

/** The JSON of the first member (`id`, `_id`, `removed`) of an object without blanks. Throws SyntaxError when it is cut. */
export function memberOf(object: string): string {
  const from = object.indexOf(':') + 1;
  let depth = 0;
  for (const { 0: token, index } of object.slice(from).matchAll(TOKENS)) {
    if (depth === 0 && (token === ',' || token === '}')) return object.slice(from, from + index);
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
  }
  throw new SyntaxError('a line ends too early');
}

/**
 * The id of a row as SQLite keeps it: text as text, a number as a number where that keeps all digits, and anything else
 * as a blob with its JSON. So two ids are equal only if their JSON is. Text that SQLite cuts at a NUL, or that UTF-8 does
 * not have, is such a blob, too.
 */
export function keyOf(row: string): RowKey {
  const json = memberOf(row);
  const text = json.startsWith('"') ? (JSON.parse(json) as string) : null;
  if (text !== null) return NO_TEXT.test(text) ? Buffer.from(json) : text;
  if (/^-?[1-9]\d{0,17}$|^0$/.test(json)) return BigInt(json);
  if (/^-?\d/.test(json) && String(Number(json)) === json && !Number.isInteger(Number(json)))
    return Number(json);
  return Buffer.from(json);
}
