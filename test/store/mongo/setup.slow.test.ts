import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Db, Document } from 'mongodb';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { Decimal128, Long } from '../../../src/store/values/bson.ts';
import { inCategory } from '../../support/store/items.ts';
import { openStore, testClient, testMongoStore } from '../../support/store/mongo/mongo.ts';
import { testMongo } from '../../support/store/mongo/mongod.ts';
import { PLENTY, readRows } from '../../support/store/reading.ts';
import { serverOn } from '../../support/process/server.ts';
import { testsWith } from '../../support/tests-with.ts';

const INDEXES: readonly Document[] = [
  { price: 1, _id: 1 },
  { category: 1, _id: 1 },
  { category: 1, price: 1, _id: 1 },
];

const TWO = { rows: 2, bytes: PLENTY };
const BY_ID = { sort: '_id', direction: 1 } as const;

async function collectionInfo(db: Db): Promise<Document | undefined> {
  const [info] = await db.listCollections({ name: 'items' }).toArray();
  return info;
}

test('a missing collection is created clustered, with a validator and its three indexes, once', async (t) => {
  const opened = await testMongoStore(t);
  if (!opened) return;
  const db = opened.client.db();
  const info = await collectionInfo(db);
  const options = info?.options as Document | undefined;
  assert.ok(options?.clusteredIndex);
  assert.ok(options.validator);
  const indexes = await db.collection('items').indexes();
  assert.deepEqual(
    indexes.map(({ key }) => key).filter((key) => Object.keys(key).length > 1),
    INDEXES,
  );
  await openStore(t, opened.uri);
  assert.deepEqual(await collectionInfo(db), info);
  assert.deepEqual(opened.warnings, []);
});

test('the validator refuses a price that is not a finite number, and a category that is not a string', async (t) => {
  const opened = await testMongoStore(t);
  if (!opened) return;
  const items = opened.client.db().collection('items');
  for (const price of [[1, 2], 'text', null, NaN, Infinity, Decimal128.fromString('-Infinity')])
    await assert.rejects(items.insertOne({ category: 'a', price }), { code: 121 });
  for (const row of [
    { price: 1 },
    { category: 1, price: 1 },
    { category: ['a'], price: 1 },
    { category: 'a' },
  ])
    await assert.rejects(items.insertOne(row), { code: 121 });
  for (const price of [0, -1.5, Decimal128.fromString('1E+6144'), Long.MIN_VALUE])
    await items.insertOne({ category: '', price });
});

const it = testsWith(testMongo);

it('an existing plain collection gets its missing indexes, and nothing else changes', async (uri, t) => {
  const db = testClient(t, uri).db();
  await db.createCollection('items', { validator: { stock: { $gte: 0 } } });
  await db.collection('items').createIndex({ category: 1, _id: 1 }, { name: 'theirs' }, {});
  const before = await collectionInfo(db);
  const { store, warnings } = await openStore(t, uri);
  assert.deepEqual(await collectionInfo(db), before);
  const names = (await db.collection('items').indexes()).map(({ name }) => name);
  assert.deepEqual(names, ['_id_', 'theirs', 'price_1__id_1', 'category_1_price_1__id_1']);
  assert.deepEqual(warnings, []);
  await db.collection('items').insertOne({ category: 'a', price: 1, stock: 1 });
  const read = await readRows(store.items, { ...BY_ID, ...inCategory('a') }, {}, TWO);
  assert.equal(read.rows.length, 1);
});

it('on a collection of items of another program nothing is created unless that is asked for', async (uri, t) => {
  const db = testClient(t, uri).db();
  await db.createCollection('items', { validator: { stock: { $gte: 0 } } });
  const names = async () => (await db.collection('items').indexes()).map(({ name }) => name);
  const started = async (environment: Readonly<Record<string, string>>) => {
    const server = await serverOn(t, { MONGODB_URI: uri, ...environment });
    const faults = await server.store.ping();
    await server.close();
    return faults.join();
  };
  assert.match(
    await started({}),
    /price, _id is missing, and MONGODB_MANAGE_INDEXES=auto creates nothing on/,
  );
  assert.deepEqual(await names(), ['_id_']);
  assert.equal(await started({ MONGODB_MANAGE_INDEXES: 'true' }), '');
  assert.equal((await names()).length, 4);
  await db.collection('items').drop();
  assert.equal(await started({}), '');
  await db.collection('items').dropIndex('price_1__id_1');
  assert.equal(await started({}), '', 'its own collection gets what is missing');
});

test('a plain collection without a validator is served with a warning', async (t) => {
  const opened = await testMongoStore(t, { existing: {} });
  if (!opened) return;
  assert.match(opened.warnings.join(), /no validator/);
});

it('with manageIndexes=false nothing is created, and missing indexes are named', async (uri, t) => {
  const db = testClient(t, uri).db();
  await assert.rejects(openStore(t, uri, { manageIndexes: false }), /'items' is missing/);
  assert.equal(await collectionInfo(db), undefined);
  await db.collection('items').createIndex({ price: 1, _id: 1 }, {}, {});
  const lacks = (fields: string, keys: string) =>
    `Some reads are refused because an index on ${fields} is missing, and MONGODB_MANAGE_INDEXES=false forbids the server to create it: run db.getSiblingDB("${db.databaseName}").getCollection("items").createIndex(${keys}).`;
  const { store, warnings } = await openStore(t, uri, { manageIndexes: false });
  assert.deepEqual(await store.ping(), [
    lacks('category, _id', '{"category":1,"_id":1}'),
    lacks('category, price, _id', '{"category":1,"price":1,"_id":1}'),
  ]);
  assert.equal(warnings.filter((warning) => warning.includes('because an index on')).length, 2);
  await db.collection('items').createIndex({ category: 1, _id: 1 }, {}, {});
  await db.collection('items').createIndex({ category: 1, price: 1, _id: 1 }, {}, {});
  const complete = await openStore(t, uri, { manageIndexes: false });
  assert.deepEqual(await complete.store.ping(), []);
});

test('an index that is dropped while the server runs is created again, and one that became unfit is reported', async (t) => {
  const opened = await testMongoStore(t, { existing: {} });
  if (!opened) return;
  const items = opened.client.db().collection('items');
  await items.insertOne({ category: 'a', price: 1 });
  const read = () => readRows(opened.store.items, { sort: 'price', direction: 1 }, {}, TWO);
  assert.equal((await read()).rows.length, 1);
  await items.dropIndex('price_1__id_1');
  assert.equal((await read()).rows.length, 1);
  await items.dropIndex('price_1__id_1');
  await items.insertOne({ category: 'a', price: [1, 2] });
  await assert.rejects(read(), { status: 503 });
  for (let attempt = 0; attempt < 3; attempt++) await assert.rejects(read(), { code: 'store-unfit' });
  assert.equal(
    opened.warnings.filter((warning) =>
      warning.includes("'price_1__id_1' cannot be used: some row has, or had, an array"),
    ).length,
    1,
  );
});

test('a plain collection that is replaced by a clustered one is read on', async (t) => {
  const opened = await testMongoStore(t, { existing: {} });
  if (!opened) return;
  const db = opened.client.db();
  await db.dropCollection('items');
  await db.createCollection('items', { clusteredIndex: { key: { _id: 1 }, unique: true } });
  await db.collection('items').insertOne({ _id: 'a' as never, category: 'a', price: 1 });
  const plan = { sort: '_id', direction: -1 } as const;
  const read = () => readRows(opened.store.items, plan, { after: makeBookmark({ _id: 'b' }) }, TWO);
  assert.equal((await read()).rows.length, 1);
});

for (const compressors of ['zlib', 'snappy,zlib'])
  test(`wire compression with ${compressors} is refused`, async (t) => {
    const uri = `mongodb://127.0.0.1:1/?compressors=${compressors}`;
    await assert.rejects(openStore(t, uri), /wire compression/);
  });
