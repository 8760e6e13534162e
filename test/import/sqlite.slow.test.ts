import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { test } from 'node:test';
import { brotliDecompressSync } from 'node:zlib';
import { parse } from 'csv-parse/sync';
import { parseImportArguments, runImport } from '../../src/import/command.ts';
import { BSON, ObjectId } from '../../src/store/bson.ts';
import type { OwnedCollection } from '../../src/store/store.ts';
import { targetOf } from '../support/import/import-store.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { NEVER, PLENTY, readRows } from '../support/store/reading.ts';

const DIAMONDS = join(import.meta.dirname, '../../src/import/sample/diamonds.csv.br');

async function importInto(items: OwnedCollection, argv: readonly string[]): Promise<string> {
  const stderr = new PassThrough({ encoding: 'utf8' });
  const io = { stdin: Readable.from([]), stderr, isTTY: false, place: 'here', signal: NEVER };
  const code = await runImport(parseImportArguments(argv), targetOf(items), io);
  const text = String(stderr.read());
  assert.equal(code, 0, text);
  return text;
}

async function allRows(items: OwnedCollection): Promise<readonly Buffer[]> {
  const size = { rows: 1_000_000, bytes: PLENTY };
  const { rows, more } = await readRows(items, { sort: '_id', direction: 1 }, {}, size);
  assert.equal(more, false);
  return rows;
}

test('The embedded store has every row of an imported CSV file, with numbers as numbers', async (t) => {
  const { store } = await testSqlite(t);
  await importInto(store.items, [DIAMONDS, '--category', 'cut']);
  const csv = brotliDecompressSync(readFileSync(DIAMONDS));
  const expected = parse<Record<string, string>>(csv, { columns: true }).map((row) => {
    const pairs = Object.entries(row).map(([name, text]) => [
      name === 'cut' ? 'category' : name,
      text === '' || Number.isNaN(Number(text)) ? text : Number(text),
    ]);
    return Object.fromEntries(pairs) as Record<string, unknown>;
  });
  const rows = (await allRows(store.items)).map((bytes) => {
    const { _id, ...fields } = BSON.deserialize(bytes);
    assert.ok(_id instanceof ObjectId);
    return fields;
  });
  assert.deepEqual(rows.map(shape).sort(), expected.map(shape).sort());
  assert.deepEqual(Object.keys(rows[0] ?? {}), Object.keys(expected[0] ?? {}), 'columns keep their order');
});

function shape(row: Record<string, unknown>): string {
  return JSON.stringify(row);
}
