import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Batch } from '../../../../src/store/batch.ts';
import { makeBookmark } from '../../../../src/store/bookmark.ts';
import { Double, Int32 } from '../../../../src/store/values/bson.ts';
import { FILE } from '../../../../src/store/sqlite/file/file.ts';
import { Slots } from '../../../../src/store/turns/slots.ts';
import type { Plan } from '../../../../src/store/store.ts';
import { expectedItems, inCategory, makeItem, makeItems, insertItems } from '../../../support/store/items.ts';
import type { Item } from '../../../support/store/items.ts';
import { openDirectory, testSqlite } from '../../../support/store/sqlite/sqlite.ts';
import { NEVER, PLENTY, assertChain, assertRows, takeRows } from '../../../support/store/reading.ts';
import { temporaryFolder } from '../../../support/directory.ts';

const BY_ID: Plan = { sort: '_id', direction: 1 };
const BY_PRICE: Plan = { sort: 'price', direction: 1 };

test('a batch leaves nothing for the garbage collector but its slot', async (t) => {
  const { store, slots } = await testSqlite(t);
  await insertItems(store.items, makeItems(10_000));
  const read = () => store.items.read(BY_ID, {}, { rows: 10_000, bytes: PLENTY }, NEVER);
  takeRows(await read()); // the memory of the slots grows
  const before = process.memoryUsage().arrayBuffers;
  const batch = await read();
  const more = process.memoryUsage().arrayBuffers - before;
  assert.ok(more < batch.length / 2, `${more} bytes for a batch of ${batch.length}`);
  batch.release();
  assert.equal(slots.taken, 0);
});

test('a walk by id is in order, whether the rows came in order or not', async (t) => {
  const { store } = await testSqlite(t);
  const items = makeItems(60);
  const inOrder = expectedItems(items, BY_ID);
  const middle = inOrder.splice(30, 1);
  const assertWalks = async () => {
    for (const direction of [1, -1] as const) {
      const plan: Plan = { sort: '_id', direction };
      const expected = expectedItems(items, plan).filter((item) => inOrder.includes(item));
      await assertChain(store.items, plan, {}, { rows: 7, bytes: PLENTY }, expected);
    }
  };
  await insertItems(store.items, inOrder);
  await assertWalks();
  const last = inOrder.pop();
  await store.items.remove([makeBookmark({ _id: last?.id ?? assert.fail() })]);
  await assertWalks();
  await insertItems(store.items, middle);
  inOrder.push(...middle);
  await assertWalks();
});

test('rows in order are read whole, whatever gaps removed rows left between them', async (t) => {
  const { store } = await testSqlite(t);
  const items = Array.from({ length: 120 }, (_, n) => makeItem(new Int32(n), 'b', new Double(n)));
  await insertItems(store.items, items);
  const gaps: ((n: number) => boolean)[] = [(n) => n < 9, (n) => n % 4 === 1, (n) => n > 50 && n < 99];
  let left = items;
  for (const isInGap of [...gaps, (n: number) => n === 118, (n: number) => n % 25 !== 0]) {
    const removed = left.filter((item) => isInGap(items.indexOf(item)));
    await store.items.remove(removed.map(({ id }) => makeBookmark({ _id: id })));
    left = left.filter((item) => !removed.includes(item));
    for (const rows of [1, 2, 7, 30, 119])
      await assertChain(store.items, BY_ID, {}, { rows, bytes: PLENTY }, left);
  }
});

test('rows are read correctly while the memory of the slots grows', async (t) => {
  // A wasm memory without a free page. Every new slot detaches all existing views.
  const memory = new WebAssembly.Memory({ initial: 4, maximum: 4096 });
  const { store, slots } = await testSqlite(t, { slots: new Slots(memory) });
  const items = Array.from({ length: 40 }, (_, n) =>
    makeItem(new Int32(n), 'b', new Double(n % 4), 'é'.repeat(n % 9 === 0 ? 50_000 : 10)),
  );
  await insertItems(store.items, items);
  const kept: [Batch, Item[]][] = [];
  for (const plan of [BY_ID, BY_PRICE, BY_ID, BY_PRICE]) {
    const reads = [1, 20, 40].map((rows) => store.items.read(plan, {}, { rows, bytes: PLENTY }, NEVER));
    for (const batch of await Promise.all(reads)) kept.push([batch, expectedItems(items, plan)]);
  }
  for (const [batch, expected] of kept) assertRows(takeRows(batch), expected.slice(0, batch.rows));
  assert.equal(slots.taken, 0);
});

test('a read without enough memory fails, keeps nothing, and the next one is served', async (t) => {
  const memory = new WebAssembly.Memory({ initial: 4, maximum: 12 });
  const { store, slots } = await testSqlite(t, { slots: new Slots(memory) });
  const items = [0, 1, 2, 3].map((n) =>
    makeItem(new Int32(n), 'b', new Double(n), 'x'.repeat(n === 3 ? 1e6 : 5)),
  );
  await insertItems(store.items, items);
  for (const plan of [BY_ID, BY_PRICE]) {
    await assert.rejects(store.items.read(plan, {}, { rows: 4, bytes: PLENTY }, NEVER));
    assert.equal(slots.taken, 0);
    const batch = await store.items.read(plan, {}, { rows: 3, bytes: 1000 }, NEVER);
    assertRows(takeRows(batch), items.slice(0, 3));
  }
});

test('a skip of more rows than one read passes is exact', async (t) => {
  const { store } = await testSqlite(t, { transactionRows: 20_000 });
  const items = Array.from({ length: 81_000 }, (_, n) => makeItem(new Int32(n), 'b', new Double(-n)));
  await insertItems(store.items, items);
  const read = async (plan: Plan, skip: number) =>
    takeRows(await store.items.read(plan, { skip }, { rows: 2, bytes: PLENTY }, NEVER));
  for (const skip of [39_999, 40_000, 40_001, 80_000, 80_999, 81_000, 900_000]) {
    assertRows(await read(BY_ID, skip), items.slice(skip, skip + 2));
    assertRows(
      await read({ ...BY_PRICE, direction: -1, ...inCategory('b') }, skip),
      items.slice(skip, skip + 2),
    );
  }
});

test('readers that stall do not make the file grow, because they hold nothing between two reads', async (t) => {
  const sizeWith = async (readers: number): Promise<number> => {
    const directory = await temporaryFolder(t);
    const store = await openDirectory(directory);
    const items = makeItems(1000);
    await insertItems(store.items, items);
    const stalled: Batch[] = [];
    for (let round = 0; round < 20; round++) {
      for (let reader = 0; reader < readers; reader++)
        stalled.push(
          await store.items.read(BY_PRICE, { skip: reader * 10 }, { rows: 5, bytes: PLENTY }, NEVER),
        );
      const fifth = items.filter((_, n) => n % 5 === round % 5);
      await insertItems(
        store.items,
        fifth.map(({ id, category, price }) => makeItem(id, category, price, `round ${round}`)),
        'replace',
      );
    }
    for (const batch of stalled) batch.release();
    await store.close();
    return (await stat(join(directory, FILE))).size;
  };
  const without = await sizeWith(0);
  const withReaders = await sizeWith(25);
  t.diagnostic(`${without} bytes without readers, ${withReaders} with 500 stalled ones`);
  assert.ok(withReaders <= 1.5 * without);
});

test('a bookmark without the value that the order needs is an invalid cursor', async (t) => {
  const { store, slots } = await testSqlite(t);
  await insertItems(store.items, makeItems(1));
  const withoutPrice = makeBookmark({ _id: new Int32(1) });
  await assert.rejects(
    store.items.read(BY_PRICE, { after: withoutPrice }, { rows: 10, bytes: PLENTY }, NEVER),
    { code: 'invalid-cursor' },
  );
  assert.equal(slots.taken, 0);
});
