import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PassThrough, Readable } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { brotliDecompressSync } from 'node:zlib';
import { parse } from 'csv-parse/sync';
import { parseImportArguments, runImport } from '../src/import/command.ts';
import { generateItems } from '../src/import/generate.ts';
import { BSON, ObjectId } from '../src/store/bson.ts';
import { openLmdb } from '../src/store/lmdb.ts';
import { Slots } from '../src/store/slots.ts';
import type { ItemStore } from '../src/store/store.ts';
import { bundled } from './support/bundle.ts';
import { testDirectory, testLmdb } from './support/lmdb.ts';
import { NEVER, PLENTY, readRows } from './support/reading.ts';

const DIAMONDS = join(import.meta.dirname, '../src/import/sample/diamonds.csv.br');
/** Of three kills each. */
const ROUNDS = process.env.LONG ? 67 : 1;

async function importInto(items: ItemStore, argv: readonly string[]): Promise<string> {
  const stderr = new PassThrough({ encoding: 'utf8' });
  const io = { stdin: Readable.from([]), stderr, isTTY: false, signal: NEVER };
  const code = await runImport(parseImportArguments(argv), items, io);
  const text = String(stderr.read());
  assert.equal(code, 0, text);
  return text;
}

async function allRows(items: ItemStore): Promise<readonly Buffer[]> {
  const size = { rows: 1_000_000, bytes: PLENTY };
  const { rows, more } = await readRows(items, { order: 'id', direction: 1 }, {}, size);
  assert.equal(more, false);
  return rows;
}

test('a CSV file in the embedded store has the rows of the CSV, numbers as numbers', async (t) => {
  const { store } = await testLmdb(t);
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

/** Runs an import in a process of its own and kills it as soon as it says that `durable` rows are in. */
async function killedAt(
  t: TestContext,
  child: string,
  directory: string,
  count: number,
  durable: number,
): Promise<number> {
  const importing = spawn(process.execPath, [child, directory, String(count)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => importing.kill('SIGKILL'));
  const exited = once(importing, 'exit');
  let said = 0;
  for await (const line of createInterface({ input: importing.stdout })) {
    said = Number(line);
    if (said >= durable) importing.kill('SIGKILL');
  }
  const [, signal] = (await exited) as [number | null, string | null];
  assert.equal(signal, 'SIGKILL', 'it was killed before its end');
  return said;
}

test(`an import killed at any time (${3 * ROUNDS} times) loses nothing it called durable, and repeated it is whole`, async (t) => {
  const count = 30_000;
  const expected: Buffer[] = [];
  for await (const row of generateItems(count, 1)) if ('item' in row) expected.push(Buffer.from(row.item));
  const child = await bundled(join(import.meta.dirname, 'support/import-child.ts'));
  t.after(() => rm(child));
  for (let round = 0; round < ROUNDS; round++) {
    const directory = await testDirectory(t);
    for (const durable of [1 + round, 8_000 - 97 * round, 16_000 - 97 * round]) {
      const said = await killedAt(t, child, directory, count, durable);
      const store = await openLmdb({ directory, slots: new Slots() });
      const rows = await allRows(store.items);
      assert.ok(rows.length >= said, `${rows.length} rows are there of ${said} durable ones`);
      assert.ok(same(rows, expected.slice(0, rows.length)), 'every row is whole');
      await store.close();
    }
    const store = await openLmdb({ directory, slots: new Slots() });
    const text = await importInto(store.items, ['--generate', String(count)]);
    assert.match(text, /30,000 rows read, .* written, .* skipped/);
    assert.ok(same(await allRows(store.items), expected));
    await store.close();
  }
});

function same(rows: readonly Buffer[], expected: readonly Buffer[]): boolean {
  return Buffer.concat(rows).equals(Buffer.concat(expected));
}
