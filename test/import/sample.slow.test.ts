import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { generateItems } from '../../src/import/synthetic.ts';
import { loadSample, SAMPLE_ROWS, sampleItems } from '../../src/import/sample.ts';
import { BSON } from '../../src/store/values/bson.ts';
import type { OwnedCollection } from '../../src/store/store.ts';
import type { SourceRows } from '../../src/import/row.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { PLENTY, readRows } from '../support/store/reading.ts';
import { eachRow } from '../support/import/each-row.ts';

const BY_ID = { sort: '_id', direction: 1 } as const;

async function collect(source: SourceRows): Promise<Uint8Array[]> {
  const items: Uint8Array[] = [];
  for await (const row of eachRow(source)) {
    assert.ok('item' in row, JSON.stringify(row));
    items.push(Uint8Array.from(row.item));
  }
  return items;
}

test('The rows of the sample never change, because documents show them', async () => {
  const items = await collect(sampleItems());
  assert.equal(items.length, SAMPLE_ROWS);
  assert.deepEqual(BSON.deserialize(items[0] ?? Buffer.alloc(0)), {
    _id: 'd00001',
    name: '0.23 ct Ideal cut diamond, color E, clarity SI2',
    category: 'Ideal',
    price: 326,
    carat: 0.23,
    color: 'E',
    clarity: 'SI2',
    depth: 61.5,
    table: 55,
    x: 3.95,
    y: 3.98,
    z: 2.43,
  });
  assert.equal(digest(items), '2600e715907e4af2e4a6ff0c95f3b8c16f9215587159d88c9af964081e7dca64');
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
});

function digest(rows: readonly Uint8Array[]): string {
  const hash = createHash('sha256');
  for (const row of rows) hash.update(row);
  return hash.digest('hex');
}

test('Generated items never change, because benchmarks depend on them, and seeds have ids of their own', async () => {
  const [few, many, others] = await Promise.all([
    collect(generateItems(1_000, 1)),
    collect(generateItems(20_000, 1)),
    collect(generateItems(1_000, 4_294_967_295)),
  ]);
  assert.equal(digest(few), '5f7c71884f41f9c48c455891ba7c6b5d4a1ed670ee62398d1355f44b152982b8');
  assert.equal(digest(many), 'ec52f91f67a69798948665e50df4be36ad6fc282fd619434c12ae486e93b982c');
  const ids = [...few, ...others].map((row) => String(BSON.deserialize(row)._id));
  assert.equal(new Set(ids).size, 2_000);
});
