import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Document } from 'mongodb';
import { ITEM_COLLECTION } from '../../../src/resources/item-collection.ts';
import { numberRange } from '../../support/store/number-range.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { bookmarkOf, makeBookmark } from '../../../src/store/bookmark.ts';
import { MongoConnection } from '../../../src/store/mongo/connection.ts';
import { Layouts } from '../../../src/store/mongo/collection/layouts.ts';
import { splitRows } from '../../../src/store/mongo/read/split.ts';
import type { Bookmark } from '../../../src/store/bookmark.ts';
import type { Plan } from '../../../src/store/store.ts';
import { inCategory } from '../../support/store/items.ts';
import { WAYS, profiled, testMongoStore, type OpenMongo } from '../../support/store/mongo/mongo.ts';
import { NEVER, PLENTY, readRows } from '../../support/store/reading.ts';
import { readRow } from '../../../src/store/turns/read-row.ts';

const COUNT = 3_000;
const SIZE = { rows: 50, bytes: PLENTY };

const PLANS = ([1, -1] as const).flatMap((direction) =>
  [{}, inCategory('a')].flatMap((filter): Plan[] => [
    { sort: '_id', direction, ...filter },
    { sort: 'price', direction, ...filter },
    { sort: 'price', direction, range: numberRange('20', '60'), ...filter },
  ]),
);

/** The server's profile of the finds of one read. Checks of the collection itself, with a batch of one, are not its cost. */
async function costOf({ client }: OpenMongo, read: () => Promise<unknown>): Promise<Document[]> {
  const profiles = await profiled(client.db(), read);
  return profiles.filter(
    ({ ns, command }) =>
      ns === `${client.db().databaseName}.items` &&
      (command as Document).find !== undefined &&
      (command as Document).singleBatch !== true,
  );
}

async function bookmarks({ store }: OpenMongo, plan: Plan): Promise<Bookmark[]> {
  const { rows } = await readRows(store.items, plan, {}, { rows: COUNT, bytes: PLENTY });
  return rows.map((row) => bookmarkOf(row, plan));
}

for (const { name, lane } of WAYS)
  test(`every find ${name} has a majority read concern and a time limit, in one causal session`, async (t) => {
    const opened = await testMongoStore(t, { lane });
    if (!opened) return;
    const { items } = opened.store;
    await items.insert([BSON.serialize({ _id: 'a', category: 'a', price: 1 })], 'fail');
    const finds = await costOf(opened, async () => {
      for (const plan of PLANS) await readRows(items, plan, {}, SIZE);
      (await readRow(items, makeBookmark({ _id: 'a' }), NEVER))?.release();
    });
    const application = lane ? 'sluice data lane' : 'sluice';
    assert.deepEqual([...new Set(finds.map(({ appName }) => appName as string))], [application]);
    const commands = finds.map(({ command }) => command as Document);
    assert.equal(commands.length, PLANS.length + 1);
    for (const { readConcern, maxTimeMS } of commands as { readConcern: Document; maxTimeMS: number }[]) {
      assert.equal(readConcern.level, 'majority');
      assert.ok(readConcern.afterClusterTime);
      assert.ok(maxTimeMS > 0);
    }
    assert.equal(new Set(commands.map(({ lsid }) => String((lsid as Document).id))).size, 1);
  });

test('rows much smaller or larger than the previous ones take few more finds', async (t) => {
  const opened = await testMongoStore(t);
  if (!opened) return;
  const { items } = opened.store;
  const row = (_id: number, category: string, bytes: number) =>
    BSON.serialize({ _id, category, price: 1, text: 'x'.repeat(bytes) });
  await items.insert(
    Array.from({ length: 40 }, (_, n) => row(n, 'large', 500_000)),
    'fail',
  );
  await items.insert(
    Array.from({ length: 2_000 }, (_, n) => row(100 + n, 'small', 10)),
    'fail',
  );
  for (const [category, rows, most] of [
    ['small', 1_000, 1],
    ['large', 1, 1],
    ['large', 1, 1],
    ['small', 1_000, 3],
    ['large', 1, 1],
  ] as const) {
    const plan: Plan = { sort: '_id', direction: 1, ...inCategory(category) };
    let got = 0;
    const read = async () => {
      got = (await readRows(opened.store.items, plan, {}, { rows: 1_000, bytes: 400_000 })).rows.length;
    };
    const finds = await costOf(opened, read);
    assert.equal(got, rows);
    assert.ok(finds.length <= most, `${finds.length} finds for ${category}`);
  }
});

test('parts examine index entries and no rows, and for too many rows a sample determines the bounds', async (t) => {
  const opened = await testMongoStore(t, { existing: {} });
  if (!opened) return;
  const rows = Array.from({ length: COUNT }, (_, n) =>
    BSON.serialize({ _id: `row ${n}`, category: 'abc'.charAt(n % 3), price: n }),
  );
  await opened.store.items.insert(rows, 'fail');
  for (const filter of [{}, inCategory('a')]) {
    const plan: Plan = { sort: '_id', direction: 1, ...filter };
    const finds = await costOf(opened, () => opened.store.items.split(plan, 8, NEVER));
    assert.deepEqual(
      finds.map(({ docsExamined }) => Number(docsExamined)),
      Array.from({ length: 7 }, () => 0),
    );
  }
  const connection = new MongoConnection(opened.uri);
  t.after(() => connection.close());
  const finder = { range: () => assert.fail('too many rows are not gone over') };
  const options = { ...ITEM_COLLECTION, manage: false, onWarning: () => undefined };
  const layouts = new Layouts(connection, options);
  t.after(() => layouts.close());
  const [layout, plan] = await layouts.layoutFor({ sort: '_id', direction: 1 }, NEVER);
  const ids = await splitRows({ layouts, finder }, plan, 8, layout, NEVER, COUNT - 1);
  const sorted = await bookmarks(opened, { sort: '_id', direction: 1 });
  const places = ids.map((id) => sorted.findIndex((each) => Buffer.compare(each, id) === 0));
  assert.deepEqual(
    places,
    Array.from({ length: 7 }, (_, n) => ((n + 1) * COUNT) / 8), // the sample has all ids
  );
});
