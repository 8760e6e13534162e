import assert from 'node:assert/strict';
import type { Reading } from '../../../src/import/arguments.ts';
import { readRows } from '../../../src/import/reading.ts';
import type { TextFormat } from '../../../src/rows/text-files.ts';
import type { Columns } from '../../../src/import/fields.ts';
import { BSON, type Document } from '../../../src/store/values/bson.ts';
import { eachRow } from './each-row.ts';

/** The default columns. */
export const COLUMNS: Columns = { category: 'category', price: 'price', id: null };

/** The result of reading a content: the items, bad rows as `place: reason`, and how the reading ended. */
export interface Outcome {
  readonly items: Document[];
  /** The items as BSON. */
  readonly documents: Uint8Array[];
  readonly bad: string[];
  readonly unit: string;
  /** What the import says at its end. */
  readonly described: readonly string[];
  readonly error?: Error;
}

/** How a file of this format is read by default. */
export function readingOf(format: TextFormat, changes: Partial<Reading> = {}): Reading {
  const types = new Map();
  return { format, columns: COLUMNS, types, delimiter: null, ...changes };
}

export async function* inChunks(content: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < content.length; at += size) {
    yield await Promise.resolve(Buffer.from(content.subarray(at, at + size)));
  }
}

interface Options extends Partial<Reading> {
  /** Bytes in a chunk. */
  readonly chunk?: number;
  /** Whether the content is a file, which can be read again, and not a pipe. */
  readonly isFile?: boolean;
}

/** Reads a whole content in chunks. */
export async function read(
  content: string | Buffer,
  format: TextFormat,
  { chunk = 65_536, isFile = false, ...changes }: Options = {},
): Promise<Outcome> {
  const outcome: { -readonly [Name in keyof Outcome]: Outcome[Name] } = {
    items: [],
    documents: [],
    bad: [],
    unit: '',
    described: [],
  };
  const bytes = () => inChunks(Buffer.from(content), chunk);
  try {
    const again = isFile ? () => Promise.resolve(bytes()) : null;
    const { rows, unit, describe } = await readRows(bytes(), readingOf(format, changes), again);
    outcome.unit = unit;
    for await (const row of eachRow(rows)) {
      if ('problem' in row) outcome.bad.push(`${row.at}: ${row.problem}`);
      else {
        outcome.documents.push(row.item);
        outcome.items.push(BSON.deserialize(row.item, { promoteLongs: false }));
      }
    }
    outcome.described = describe?.() ?? [];
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
