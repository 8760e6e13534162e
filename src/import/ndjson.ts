import { isUtf8 } from 'node:buffer';
import { parseExact } from './json.ts';
import type { Columns } from './item.ts';
import { LineSplitter, type Line } from './lines.ts';
import { itemOfObject } from './object.ts';
import { BadRow, LONGEST_ROW, type SourceRow } from './row.ts';

const BYTE_ORDER_MARK = '\ufeff';
const BLANK = /^[ \t\r]*$/;
/** An integer that a double may not hold (or a text that looks so: harmless); then the slow, exact reader is used. */
const LONG_INTEGER = /[:,[\s]-?\d{16,}\s*[,}\]]/;

/** Reads newline-delimited JSON: an object a line; blank lines are ignored. `at` is the line. */
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

function parseLine(text: string): unknown {
  const value = parseJson(text);
  return LONG_INTEGER.test(text) ? parseExact(text) : value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new BadRow(`it is not JSON: ${error.message}`);
    throw error;
  }
}
