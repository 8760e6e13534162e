import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BSON } from '../../../src/store/values/bson.ts';
import { ITEM_COLLECTION } from '../../../src/resources/item-collection.ts';
import { Slots } from '../../../src/store/turns/slots.ts';
import { openSqlite } from '../../../src/store/sqlite/sqlite-store.ts';
import type { Collection, CollectionEntry, Store } from '../../../src/store/store.ts';
import { fillWith, startFill } from '../../support/store/filling.ts';
import { makeOldItems, openDirectory, openFor, openRaw } from '../../support/store/sqlite/sqlite.ts';
import { NEVER, PLENTY, readRows } from '../../support/store/reading.ts';
import { temporaryFolder } from '../../support/directory.ts';

const SIZE = { rows: 10_000, bytes: PLENTY };
const INDEXES = [['status', 'at'], ['total']];
const ORDERS = { name: 'orders', collection: 'orders', indexes: INDEXES };

type Row = Readonly<Record<string, unknown>> & { readonly _id: unknown };
const bytesOf = (rows: readonly Row[]) => rows.map((row) => BSON.serialize(row));

async function indexNamed(rows: Collection, path: string) {
  const index = (await rows.describe(NEVER)).indexes.find(({ keys }) => keys[0]?.path === path);
  return index ?? assert.fail(`no index of ${path}`);
}

/** The ids of all rows in the order of a path. */
async function idsBy(rows: Collection, sort: string): Promise<unknown[]> {
  const index = sort === '_id' ? undefined : await indexNamed(rows, sort);
  const read = await readRows(rows, { sort, direction: 1, ...(index && { index }) }, {}, SIZE);
  assert.equal(read.more, false);
  return read.rows.map((row) => BSON.deserialize(row)._id as unknown);
}

/** What a store lists, without the items, which the helper has opened. */
async function seenBy(store: Store): Promise<readonly CollectionEntry[]> {
  return (await store.list()).collections.filter(({ collection }) => collection !== 'items');
}

/** What is wrong with the entries and the number of the rows in the file. */
function faultsIn(directory: string): string[] {
  const { faults, close } = openRaw(directory);
  const found = faults('resource orders');
  close();
  return found;
}

test('every collection has an identity of its own, that of items too', async (t) => {
  const identities: unknown[] = [];
  for (const directory of [await temporaryFolder(t), await temporaryFolder(t)]) {
    const store = await openFor(t, directory);
    for (const rows of [store.items, await store.open(ORDERS)])
      identities.push((await rows.describe(NEVER)).identity);
  }
  assert.equal(new Set(identities).size, 4);
  for (const identity of identities) assert.match(String(identity), /^(?!0{32})[0-9a-f]{32}$/);
});

test('a resource, its indexes and its rows are there when the store is opened again', async (t) => {
  const directory = await temporaryFolder(t);
  const first = await openDirectory(directory);
  assert.deepEqual(await seenBy(first), []);
  const orders = await first.open(ORDERS);
  await orders.insert(bytesOf([{ _id: 2, total: 1 }, { _id: 'a', total: 0.5 }, { _id: 1 }]), 'fail');
  await first.close();
  const store = await openFor(t, directory);
  assert.deepEqual(await seenBy(store), [{ database: '', collection: 'orders', declaration: ORDERS }]);
  const again = await store.open({ ...ORDERS, indexes: [] });
  assert.deepEqual(await idsBy(again, 'total'), [1, 'a', 2]);
  assert.deepEqual(
    (await again.describe(NEVER)).indexes.map(({ name }) => name),
    ['_id_', 'status_1_at_1__id_1', 'total_1__id_1'],
  );
});

for (const ends of ['with rows', 'without rows', 'with rows that came one by one'])
  test(`a new resource is not seen before its first import has ended: ${ends}`, async (t) => {
    const directory = await temporaryFolder(t);
    const importer = await openFor(t, directory);
    const server = await openFor(t, directory);
    const said: string[] = [];
    const make = () => importer.open({ ...ORDERS, indexes: [], onMade: (line) => said.push(line) }, 'make');
    const seen = async () => (await seenBy(server)).map(({ isUnfilled = false }) => isUnfilled);
    const rows = bytesOf([{ _id: 1 }, { _id: 2 }]);
    for (const attempt of [1, 2]) {
      const failing = startFill(await make());
      failing.add(rows);
      await failing.asks();
      assert.deepEqual(await seen(), [true], `import ${attempt} is under way`);
      failing.fail(new Error('broken'));
      await assert.rejects(failing.done, /broken/);
      assert.deepEqual(await seen(), [true], `import ${attempt} has failed`);
    }
    const orders = await make();
    assert.deepEqual(said, new Array(3).fill('created the resource orders'));
    if (ends === 'with rows that came one by one') await orders.insert(rows, 'fail');
    else await fillWith(orders, ends === 'with rows' ? rows : []);
    assert.deepEqual(await seen(), [false]);
    await make();
    assert.equal(said.length, 3, 'it is not made again');
  });

test('the items of a file of before are those that are opened, and are listed as filled once they have a row', async (t) => {
  const directory = await temporaryFolder(t);
  await (await openSqlite({ directory, slots: new Slots() })).close();
  makeOldItems(directory);
  const store = await openFor(t, directory);
  const listed = async () =>
    (await store.list()).collections.map(({ declaration, isUnfilled = false }) => [declaration, isUnfilled]);
  const { name, collection, indexes } = ITEM_COLLECTION;
  assert.deepEqual(await listed(), [[{ name, collection, indexes }, true]]);
  await assert.doesNotReject(store.items.insert(bytesOf([{ _id: 1, category: 'a', price: 1 }]), 'fail'));
  assert.deepEqual(await listed(), [[{ name, collection, indexes }, false]]);
  const { refused } = await store.items.insert(bytesOf([{ _id: 2, category: 'a', price: 'x' }]), 'fail');
  assert.equal(refused.length, 1, 'a row that is no item is refused');
  const { sets, count, close } = openRaw(directory);
  assert.deepEqual([sets.names(), count('items')], [['items'], 1]);
  close();
});

test('a collection items that has another name is not the items of a file of before', async (t) => {
  const directory = await temporaryFolder(t);
  await (await openSqlite({ directory, slots: new Slots() })).close();
  makeOldItems(directory);
  const store = await openFor(t, directory);
  const stuff = await store.open({ name: 'stuff', collection: 'items', indexes: [] });
  await stuff.insert(bytesOf([{ _id: 1, total: 1 }]), 'fail');
  const { count, close } = openRaw(directory);
  assert.deepEqual([count('items'), count('resource items')], [0, 1]);
  close();
});

test('items that a server opens are not listed as filled before they have a row, and are when it is removed', async (t) => {
  const store = await openFor(t, await temporaryFolder(t));
  const isUnfilled = async () => (await store.list()).collections.map((one) => one.isUnfilled === true);
  assert.deepEqual(await isUnfilled(), [true]);
  await store.items.insert(bytesOf([{ _id: 1, category: 'a', price: 1 }]), 'fail');
  await store.items.clear(NEVER);
  assert.deepEqual(await isUnfilled(), [false]);
});

test('the embedded store has no other database', async (t) => {
  const store = await openFor(t, await temporaryFolder(t));
  assert.deepEqual(await store.list('other'), { collections: [] });
});

test('an array in an indexed field keeps its row and makes the index unusable, for good and with the reason', async (t) => {
  const directory = await temporaryFolder(t);
  const store = await openFor(t, directory);
  const orders = await store.open(ORDERS);
  await orders.insert(bytesOf([{ _id: 1, total: 5, status: 'a' }]), 'fail');
  const index = await indexNamed(orders, 'total');
  const plan = { sort: 'total', direction: 1, index } as const;
  const batch = await orders.read(plan, {}, SIZE, NEVER);
  batch.release();
  await batch.confirm(NEVER);
  const { written, refused } = await orders.insert(
    bytesOf([
      { _id: 2, total: [1] },
      { _id: 3, total: 2 },
    ]),
    'fail',
  );
  assert.deepEqual([written, refused], [2, []]);
  assert.deepEqual(await idsBy(orders, '_id'), [1, 2, 3]);
  const ofStatus = { equals: [{ path: 'status', value: 'a' }], index: await indexNamed(orders, 'status') };
  const { rows } = await readRows(orders, { sort: 'at', direction: 1, ...ofStatus }, {}, SIZE);
  assert.equal(rows.length, 1);
  const read = () => orders.read(plan, {}, SIZE, NEVER);
  await assert.rejects(read, { code: 'store-unfit', message: /total_1__id_1 .*a row has an array at total/ });
  await assert.rejects(batch.confirm(NEVER), { code: 'store-unfit' });
  await orders.insert(bytesOf([{ _id: 2, total: 1 }]), 'replace');
  await store.close();
  const again = await (await openFor(t, directory)).open(ORDERS);
  assert.match((await indexNamed(again, 'total')).refused ?? '', /an array at total/);
  assert.equal((await indexNamed(again, 'status')).refused, undefined);
  assert.deepEqual(faultsIn(directory), []);
});

test('an array on the way to an indexed field makes the index unusable, too', async (t) => {
  const orders = await (await openFor(t, await temporaryFolder(t))).open({ ...ORDERS, indexes: [['a.b']] });
  await orders.insert(
    bytesOf([
      { _id: 1, a: { b: 1 } },
      { _id: 2, a: [{ b: 1 }] },
    ]),
    'fail',
  );
  assert.match((await indexNamed(orders, 'a.b')).refused ?? '', /an array at a\.b/);
});

test('a row that can have no key is refused by name, and rows with the longest keys are written', async (t) => {
  const directory = await temporaryFolder(t);
  const orders = await (await openFor(t, directory)).open(ORDERS);
  const rows = [
    { _id: 1, total: 'x'.repeat(100_000) },
    { _id: 'y'.repeat(100_000) },
    { _id: [1] },
    { _id: 4, status: 'x'.repeat(1_000), at: 'x'.repeat(1_000) },
  ];
  const { written, refused } = await orders.insert(bytesOf(rows), 'fail');
  assert.equal(written, 3);
  assert.deepEqual(
    refused.map(({ index }) => index),
    [2],
  );
  assert.match(refused[0]?.reason ?? '', /^_id is of BSON type 4/);
  assert.deepEqual(await idsBy(orders, 'total'), [4, 'y'.repeat(100_000), 1]);
  assert.deepEqual(faultsIn(directory), []);
});

test('an index added to a full resource is built meanwhile, goes on after an end, and is used once it is whole', async (t) => {
  const directory = await temporaryFolder(t);
  // Few rows at once, so that a build takes many transactions.
  const first = await openDirectory(directory, { transactionRows: 50 });
  const rows = Array.from({ length: 1_000 }, (_, n) => ({ _id: n, total: (n * 7_919) % 1_001, status: 'a' }));
  await (await first.open({ ...ORDERS, indexes: [] })).insert(bytesOf(rows), 'fail');
  const building = await first.open(ORDERS);
  assert.match((await indexNamed(building, 'total')).refused ?? '', /still being built/);
  const index = await indexNamed(building, 'total');
  const plan = { sort: 'total', direction: 1, index } as const;
  await assert.rejects(() => building.read(plan, {}, SIZE, NEVER), { code: 'store-unfit' });
  await building.insert(
    bytesOf([
      { _id: 0, total: -1 },
      { _id: 999, total: -2 },
      { _id: -1, total: -3 },
    ]),
    'replace',
  );
  await first.close(); // long before the index is whole

  const store = await openFor(t, directory);
  const orders = await store.open({ ...ORDERS, indexes: [] });
  assert.match((await indexNamed(orders, 'status')).refused ?? 'used', /still being built/);
  for (const path of ['status', 'total']) while ((await indexNamed(orders, path)).refused) await nextTurn();
  assert.deepEqual(faultsIn(directory), []); // all rows are of one resource
  assert.deepEqual((await idsBy(orders, 'total')).slice(0, 3), [-1, 999, 0]);
  assert.equal((await idsBy(orders, 'total')).length, 1_001);
});

test('the log reports an index that cannot be built, which stays unused until a new try a minute later', async (t) => {
  const directory = await temporaryFolder(t);
  const first = await openDirectory(directory);
  const row = BSON.serialize({ _id: 1, customer: { country: 'NL' } });
  await (await first.open({ ...ORDERS, indexes: [] })).insert([row], 'fail');
  await first.close();
  const damaged = Buffer.from(row);
  damaged.writeUInt8(0x63, damaged.indexOf('country') - 1); // no type of BSON
  const raw = openRaw(directory);
  raw.damage(row, damaged, 'resource orders');
  raw.close();

  const warnings: string[] = [];
  let hear: () => void = () => assert.fail('too early');
  const heard = () => new Promise<void>((resolve) => (hear = resolve));
  const onWarning = (message: string) => {
    warnings.push(message);
    hear();
  };
  let now = 0;
  const failed = heard();
  const store = await openDirectory(directory, { onWarning, now: () => now });
  const orders = await store.open({ ...ORDERS, indexes: [['customer.country']] });
  await failed;
  assert.match(
    warnings[0] ?? '',
    /^the indexes of orders are not whole yet: a document in a row cannot be read/,
  );
  const look = async () =>
    assert.match((await indexNamed(orders, 'customer.country')).refused ?? '', /still being built/);
  now += 59_999;
  for (let n = 0; n < 20; n++) {
    await look();
    await nextTurn();
  }
  await store.items.insert(bytesOf([{ _id: 1, category: 'a', price: 1 }]), 'fail'); // behind any try
  assert.equal(warnings.length, 1, 'requests of the next minute do not try again');
  now += 1;
  const again = heard();
  await look();
  await again;
  assert.equal(warnings.length, 2);
});
