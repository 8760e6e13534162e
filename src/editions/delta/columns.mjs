/**
 * The columns of rows as JSON text. A row is its columns and `_rest`: a value is in its column when the column can have that
 * very value, and it is in `_rest` when its text could not be made of the column again. Members of `_rest` stand above those
 * of columns. It is JavaScript, because a thread runs it (see parquet-thread.mjs).
 */
import { readerOf } from './values.mjs';

const LF = 0x0a;
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const CLOSING_BRACE = 0x7d;
/** Without a look at the end, rows that were cut would be read for ever. */
const CUT = 'a row ends before its end';

/** The values of each column, and of `_rest` behind them, from rows as NDJSON without spaces. */
export function columnsOf(bytes, schema) {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
  const table = new Table(schema, countOfLines(bytes));
  let at = 0;
  for (let row = 0; at < text.length; row++) at = table.addRow(text, at, row);
  return table.data;
}

class Table {
  constructor({ columns, hasKey }, rows) {
    this.data = [...columns, '_rest'].map(() => new Array(rows).fill(null));
    this.hasKey = hasKey;
    this.readers = columns.map(({ type }) => readerOf(type));
    this.heads = columns.map(({ name }) => `${JSON.stringify(name)}:`);
    this.places = new Map(this.heads.map((head, place) => [head, place]));
    /** The row that each column was met in last: of members with one name, all but the first stand in `_rest`. */
    this.met = new Int32Array(columns.length).fill(-1);
  }

  /** Adds the row that begins at a place of the text. Returns the place of the next one. */
  addRow(text, begin, row) {
    let rest = '';
    let expected = 0;
    let at = begin + 1;
    while (text.charCodeAt(at) !== CLOSING_BRACE) {
      if (text.charCodeAt(at) === COMMA) at++;
      const isExpected = expected < this.heads.length && text.startsWith(this.heads[expected], at);
      const valueAt = isExpected ? at + this.heads[expected].length : endOfText(text, at) + 1;
      const place = isExpected ? expected : this.places.get(text.slice(at, valueAt));
      const end = endOfValue(text, valueAt);
      if (place !== undefined) expected = place + 1;
      const isKey = at === begin + 1;
      if (!this.put(place, row, text.slice(valueAt, end), isKey))
        rest += `${rest === '' ? '{' : ','}${text.slice(at, end)}`;
      at = end;
    }
    if (text.charCodeAt(at + 1) !== LF) throw new Error(CUT);
    if (rest !== '') this.data[this.readers.length][row] = `${rest}}`;
    return at + 2;
  }

  /** Puts a value into its column, if that can have it. Returns whether its text can be made of the column again. */
  put(place, row, json, isKey) {
    if (place === undefined || this.met[place] === row) return false;
    this.met[place] = row;
    // A row whose key is called `_id` has a field `id` of its own, which is in no order.
    if (this.hasKey && place === 0 && !isKey) return false;
    const { exact, equal } = this.readers[place];
    const value = exact(json);
    this.data[place][row] = value ?? equal(json) ?? null;
    return value !== undefined;
  }
}

/** The place behind the text that begins at a quotation mark. */
function endOfText(text, begin) {
  let end = quoteBehind(text, begin);
  while (isEscaped(text, end)) end = quoteBehind(text, end);
  return end + 1;
}

function quoteBehind(text, at) {
  const found = text.indexOf('"', at + 1);
  if (found < 0) throw new Error(CUT);
  return found;
}

function isEscaped(text, quote) {
  let at = quote;
  while (text.charCodeAt(at - 1) === BACKSLASH) at--;
  return (quote - at) % 2 === 1;
}

function endOfValue(text, begin) {
  const first = text[begin];
  if (first === '"') return endOfText(text, begin);
  if (first === '{' || first === '[') return endOfNested(text, begin);
  let at = begin;
  for (let code = 0; code !== COMMA && code !== CLOSING_BRACE;) code = codeAt(text, ++at);
  return at;
}

function endOfNested(text, begin) {
  let depth = 0;
  let at = begin;
  do {
    const code = codeAt(text, at);
    if (code === 0x7b || code === 0x5b) depth++;
    if (code === 0x7d || code === 0x5d) depth--;
    at = code === QUOTE ? endOfText(text, at) : at + 1;
  } while (depth > 0);
  return at;
}

function codeAt(text, at) {
  if (at >= text.length) throw new Error(CUT);
  return text.charCodeAt(at);
}

function countOfLines(bytes) {
  let count = 0;
  for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at + 1)) count++;
  return count;
}
