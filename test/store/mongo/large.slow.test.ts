import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MongoClient } from 'mongodb';
import type { Plan } from '../../../src/store/store.ts';
import { Double, Int32 } from '../../../src/store/values/bson.ts';
import { expectedItems, inCategory, makeItem } from '../../support/store/items.ts';
import { testMongoStore } from '../../support/store/mongo/mongo.ts';
import { PLENTY, assertChain } from '../../support/store/reading.ts';

const MEGABYTE = 1024 * 1024;
const PLANS = ([1, -1] as const).flatMap((direction): Plan[] => [
  { sort: '_id', direction },
  { sort: 'price', direction },
  { sort: '_id', direction, ...inCategory('b') },
]);

const KINDS = [
  { kind: 'clustered collection over the lane', options: {} },
  { kind: 'plain collection through the driver', options: { lane: false, existing: {} } },
];

for (const { kind, options } of KINDS) {
  test(`rows of which two do not fit one reply arrive whole from a ${kind}, and no cursor stays open`, async (t) => {
    const opened = await testMongoStore(t, options);
    if (!opened) return;
    const { store, client, slots } = opened;
    const items = [15.9, 15.9, 9, 1].map((megabytes, n) =>
      makeItem(new Int32(n), 'b', new Double(n >> 1), 'x'.repeat(megabytes * MEGABYTE)),
    );
    for (const { bytes } of items) {
      const { refused } = await store.items.insert([bytes], 'fail');
      assert.deepEqual(refused, []);
    }
    for (const plan of PLANS) {
      const size = { rows: 4, bytes: PLENTY };
      await assertChain(store.items, plan, {}, size, expectedItems(items, plan));
    }
    assert.equal(slots.taken, 0);
    await store.close();
    assert.deepEqual(await openCursors(client), []);
  });
}

test("a row larger than MongoDB's limit is refused by its position, the others are written", async (t) => {
  const opened = await testMongoStore(t);
  if (!opened) return;
  const small = makeItem('small', 'b', new Double(1));
  const large = makeItem('large', 'b', new Double(1), 'x'.repeat(16 * MEGABYTE));
  for (const onConflict of ['skip', 'replace'] as const) {
    const result = await opened.store.items.insert([large.bytes, small.bytes], onConflict);
    assert.deepEqual(
      result.refused.map(({ index }) => index),
      [0],
    );
    assert.match(result.refused[0]?.reason ?? '', /at most 16\d+ bytes/);
  }
});

/** The number of cursors that the server keeps open on the database's collection. */
async function openCursors(client: MongoClient): Promise<unknown[]> {
  const stages = [
    { $currentOp: { allUsers: true, idleCursors: true } },
    { $match: { type: 'idleCursor', ns: `${client.db().databaseName}.items` } },
  ];
  return client.db('admin').aggregate(stages).toArray();
}
