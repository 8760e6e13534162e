import assert from 'node:assert/strict';
import { readRows } from '../../src/import/source.ts';
import type { Format } from '../../src/rows/formats.ts';
import type { Columns } from '../../src/import/item.ts';
import { BSON, type Document } from '../../src/store/bson.ts';

/** The default columns. */
export const COLUMNS: Columns = { category: 'category', price: 'price', id: null };

/** The result of reading a content: the items, bad rows as `place: reason`, and how the reading ended. */
export interface Outcome {
  readonly items: Document[];
  readonly bad: string[];
  readonly unit: string;
  readonly error?: Error;
}

export async function* inChunks(content: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < content.length; at += size) {
    yield await Promise.resolve(Buffer.from(content.subarray(at, at + size)));
  }
}

/** Reads a whole content in chunks of `chunk` bytes. */
export async function read(
  content: string | Buffer,
  format: Format,
  { columns = COLUMNS, chunk = 65_536 }: { columns?: Columns; chunk?: number } = {},
): Promise<Outcome> {
  const outcome: { items: Document[]; bad: string[]; unit: string; error?: Error } = {
    items: [],
    bad: [],
    unit: '',
  };
  try {
    const { rows, unit } = await readRows(inChunks(Buffer.from(content), chunk), format, columns);
    outcome.unit = unit;
    for await (const row of rows) {
      if ('problem' in row) outcome.bad.push(`${row.at}: ${row.problem}`);
      else outcome.items.push(BSON.deserialize(row.item, { promoteLongs: false }));
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    outcome.error = error;
  }
  return outcome;
}

/**
 * The item of a valid JSON object. Checks that it is the same when read as a line and as an element of an
 * array.
 */
export async function jsonItem(text: string, columns = COLUMNS): Promise<Document> {
  const [line, array] = await Promise.all([
    read(text, 'ndjson', { columns }),
    read(`[${text}]`, 'json', { columns }),
  ]);
  for (const { bad, error } of [line, array]) assert.deepEqual({ bad, error }, { bad: [], error: undefined });
  assert.deepEqual(line.items, array.items);
  assert.ok(line.items[0]);
  return line.items[0];
}
