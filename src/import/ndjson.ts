import { isUtf8 } from 'node:buffer';
import { keepsDigits } from './digits.ts';
import { parseExact } from './json.ts';
import type { Columns } from './item.ts';
import { LineSplitter, type Line } from './lines.ts';
import { namesKept, namesWritten } from './names.ts';
import { itemOfObject } from './object.ts';
import { BadRow, LONGEST_ROW, type SourceRow } from './row.ts';
import { MAX_DEPTH } from './value.ts';

const BYTE_ORDER_MARK = '\ufeff';
const BLANK = /^[ \t\r]*$/;
/**
 * A number whose digits a double may not keep. A similar piece of text inside a string may match too, which
 * is harmless.
 */
const LONG_NUMBER = /[:,[\s](-?(?:\d[\d.]{15,}(?:[eE][+-]?\d+)?|\d[\d.]*[eE]-\d{3,}))(?=\s*[,}\]])/g;

/** Reads newline-delimited JSON, one object per line. Blank lines are ignored. `at` is the line number. */
export async function* readNdjson(
  source: AsyncIterable<Buffer>,
  columns: Columns,
): AsyncGenerator<SourceRow> {
  const splitter = new LineSplitter(LONGEST_ROW);
  for await (const chunk of source) {
    for (const line of splitter.push(chunk)) {
      const row = rowOf(line, columns);
      if (row) yield row;
    }
  }
  for (const line of splitter.end()) {
    const row = rowOf(line, columns);
    if (row) yield row;
  }
}

function rowOf({ at, bytes }: Line, columns: Columns): SourceRow | null {
  if (!bytes) return { at, problem: 'the line is longer than 16 MB' };
  try {
    const text = textOf(bytes, at);
    return BLANK.test(text) ? null : { at, item: itemOfObject(parseLine(text), columns) };
  } catch (error) {
    if (error instanceof BadRow) return { at, problem: error.message };
    throw error;
  }
}

function textOf(bytes: Buffer, at: number): string {
  const text = bytes.toString('utf8');
  if (text.includes('\ufffd') && !isUtf8(bytes)) throw new BadRow('it is not valid UTF-8');
  return at === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}

/**
 * Parses a line. Throws BadRow when it is not JSON, or when an object gives a name twice. The exact parser is
 * slow, so it is used only when JSON.parse would lose something.
 */
function parseLine(text: string): unknown {
  const value = parseJson(text);
  const isWhole = keepsNumbers(text) && namesKept(value, MAX_DEPTH) === namesWritten(text);
  return isWhole ? value : parseExact(text);
}

function keepsNumbers(text: string): boolean {
  for (const [, number = ''] of text.matchAll(LONG_NUMBER)) {
    const value = Number(number);
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) return false;
    if (!keepsDigits(number, value)) return false;
  }
  return true;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new BadRow(`it is not JSON: ${error.message}`);
    throw error;
  }
}
