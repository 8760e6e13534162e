import type { JsonRows } from './json-rows.ts';
import { BadRow, BrokenSource, NotJson, type SourceRow } from './row.ts';
import type { RowSplitter, RowText } from './split-json.ts';

/**
 * Reads rows of JSON: one object per line, or the elements of one array. In an array, a row that is not JSON ends the run
 * (BrokenSource), because the elements after it cannot be told apart. The elements before it are imported.
 */
export async function* readJson(
  source: AsyncIterable<Buffer>,
  splitter: RowSplitter,
  rows: JsonRows,
): AsyncGenerator<SourceRow> {
  for await (const chunk of source) {
    for (const text of splitter.push(chunk)) yield rowOf(text, splitter.unit, rows);
  }
  for (const text of splitter.end()) yield rowOf(text, splitter.unit, rows);
}

function rowOf({ at, bytes }: RowText, unit: RowSplitter['unit'], rows: JsonRows): SourceRow {
  if (!bytes) return { at, problem: `the ${unit} is longer than 16 MB` };
  try {
    return { at, item: rows.itemOf(bytes) };
  } catch (error) {
    if (!(error instanceof BadRow)) throw error;
    if (!(error instanceof NotJson)) return { at, problem: error.message };
    if (unit === 'line') return { at, problem: `the line is not valid JSON ${error.message}` };
    throw new BrokenSource(`the JSON is invalid in or after row ${at}: ${error.message}`);
  }
}
