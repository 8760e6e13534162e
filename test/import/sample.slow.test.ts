import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { brotliDecompressSync } from 'node:zlib';
import { parse } from 'csv-parse/sync';
import { generateItems } from '../../src/import/synthetic.ts';
import { loadSample, SAMPLE_ROWS, sampleItems } from '../../src/import/sample.ts';
import { BSON, ObjectId, type Document } from '../../src/store/bson.ts';
import type { OwnedCollection } from '../../src/store/store.ts';
import type { SourceRow } from '../../src/import/row.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { NEVER, PLENTY, readRows } from '../support/store/reading.ts';

const FILE = join(import.meta.dirname, '../../src/import/sample/diamonds.csv.br');
const BY_ID = { sort: '_id', direction: 1 } as const;

async function collect(source: AsyncIterable<SourceRow>): Promise<Uint8Array[]> {
  const items: Uint8Array[] = [];
  for await (const row of source) {
    assert.ok('item' in row, JSON.stringify(row));
    items.push(Uint8Array.from(row.item));
  }
  return items;
}

test('The sample has every value that another CSV reader finds in its file', async () => {
  const csv = brotliDecompressSync(readFileSync(FILE));
  const rows = parse<Record<string, string>>(csv, { columns: true });
  const items = (await collect(sampleItems())).map((item) => BSON.deserialize(item));
  assert.equal(items.length, SAMPLE_ROWS);
  assert.equal(rows.length, SAMPLE_ROWS);
  for (const [index, { carat, cut, color, clarity, depth, table, price, x, y, z }] of rows.entries()) {
    const name = `${carat} ct ${cut} cut diamond, color ${color}, clarity ${clarity}`;
    const numbers = { carat, depth, table, price, x, y, z };
    const expected = {
      _id: `d${String(index + 1).padStart(5, '0')}`,
      name,
      category: cut,
      color,
      clarity,
      ...Object.fromEntries(Object.entries(numbers).map(([key, text]) => [key, Number(text)])),
    };
    const same = isDeepStrictEqual(items[index], expected); // 54,000 times: assert's own way takes seconds
    if (!same) assert.deepEqual(items[index], expected);
  }
});

test('The sample is loaded into an empty store only once', async (t) => {
  const { store } = await testSqlite(t);
  assert.equal(await loadSample(store.items), SAMPLE_ROWS);
  assert.equal(await loadSample(store.items), 0);
  const { rows, more } = await readRows(store.items, BY_ID, {}, { rows: SAMPLE_ROWS, bytes: PLENTY });
  assert.deepEqual([rows.length, more], [SAMPLE_ROWS, false]);
});

test('A load that failed at any point is completed by the next one', async (t) => {
  const { store, slots } = await testSqlite(t);
  const down = new Error('down');
  for (const lasting of [0, 1, 9]) {
    const broken = loadSample(failingAfter(store.items, lasting));
    await assert.rejects(broken, (error) => error === down);
  }
  assert.ok((await loadSample(store.items)) > 0);
  assert.equal(await loadSample(store.items), 0);
  const { rows } = await readRows(store.items, BY_ID, {}, { rows: SAMPLE_ROWS + 1, bytes: PLENTY });
  assert.equal(rows.length, SAMPLE_ROWS);
  assert.equal(slots.taken, 0);

  function failingAfter(items: OwnedCollection, inserts: number): Pick<OwnedCollection, 'read' | 'insert'> {
    let left = inserts;
    return {
      read: (...call) => items.read(...call),
      insert: (...call) => (left-- > 0 ? items.insert(...call) : Promise.reject(down)),
    };
  }
});

test("A store with other items stays unchanged, even when one has the sample's first id", async (t) => {
  const { store } = await testSqlite(t);
  await store.items.insert([BSON.serialize({ _id: 'd00001', category: 'mine', price: 1 })], 'fail');
  assert.equal(await loadSample(store.items), 0);
  const { rows } = await readRows(store.items, BY_ID, {}, { rows: 10, bytes: PLENTY });
  assert.equal(rows.length, 1);
  assert.equal(NEVER.aborted, false);
});

async function generated(
  count: number,
  seed: number,
): Promise<{ bytes: Uint8Array[]; documents: Document[] }> {
  const bytes = await collect(generateItems(count, seed));
  return { bytes, documents: bytes.map((row) => BSON.deserialize(row)) };
}

function digest(rows: readonly Uint8Array[]): string {
  const hash = createHash('sha256');
  for (const row of rows) hash.update(row);
  return hash.digest('hex');
}

test('Generated items never change, because benchmarks depend on them', async () => {
  const bytes = await collect(generateItems(20_000, 1));
  assert.equal(
    digest(bytes.slice(0, 1_000)),
    '5f7c71884f41f9c48c455891ba7c6b5d4a1ed670ee62398d1355f44b152982b8',
  );
  assert.equal(digest(bytes), 'ec52f91f67a69798948665e50df4be36ad6fc282fd619434c12ae486e93b982c');
});

test('A smaller count gives the first items of a larger one, and another seed gives other items', async () => {
  const [few, many, others] = await Promise.all([generated(10, 5), generated(1_000, 5), generated(1_000, 6)]);
  assert.deepEqual(few.bytes, many.bytes.slice(0, 10));
  const ids = [...many.documents, ...others.documents].map(({ _id }) => String(_id));
  assert.equal(new Set(ids).size, 2_000);
  assert.notDeepEqual(
    many.documents.map(({ price }) => price as number),
    others.documents.map(({ price }) => price as number),
  );
});

test('Generated items have the documented fields and about 205 bytes', async () => {
  const { bytes, documents } = await generated(2_000, 4_294_967_295);
  const size = bytes.reduce((sum, row) => sum + row.length, 0) / bytes.length;
  assert.ok(size > 195 && size < 215, `${size} bytes on average`);
  const ids = documents.map(({ _id }) => String(_id as ObjectId));
  assert.deepEqual(ids, ids.toSorted(), 'ids ascend');
  assert.equal(new Set(documents.map(({ category }) => category as string)).size, 8);
  for (const document of documents) {
    assert.deepEqual(Object.keys(document), [
      ...['_id', 'name', 'category', 'price', 'description', 'stock', 'createdAt', 'updatedAt'],
    ]);
    assert.ok(document._id instanceof ObjectId);
    const price = document.price as number;
    assert.ok(price >= 0 && price <= 1_000 && Number(price.toFixed(2)) === price, String(price));
    assert.equal((document.description as string).split(' ').length, 8);
    assert.ok(Number.isInteger(document.stock));
    assert.equal((document.createdAt as Date).getTime(), document._id.getTimestamp().getTime());
    assert.ok((document.updatedAt as Date) >= (document.createdAt as Date));
  }
});
