import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { CollectionInfo } from 'mongodb';
import { BSON } from '../../src/store/values/bson.ts';
import { inCategory } from '../support/store/items.ts';
import { fetchUntilCut } from '../support/faults/cutter.ts';
import { openRaw } from '../support/store/sqlite/sqlite.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { openPlace } from '../support/store/place.ts';
import { NEVER } from '../support/store/reading.ts';
import { serverOn, type StoreName, type TestServer } from '../support/process/server.ts';
import { Barrier, BATCH_ROWS } from '../support/store/barrier.ts';
import { temporaryFolder } from '../support/directory.ts';
import type { StoreWithItems } from '../support/store/with-items.ts';

const ROWS = 1_500;
const ALL = { sort: '_id', direction: 1 } as const;

function rows(count: number, of = 'old'): Uint8Array[] {
  return Array.from({ length: count }, (_, n) =>
    BSON.serialize({ _id: n, category: n % 2 ? 'a' : 'b', price: n / 4, of: `<${of}>` }),
  );
}

/** A place for a store. Null when there is no mongod. */
async function placeFor(t: TestContext, name: StoreName): Promise<string | null> {
  return name === 'sqlite' ? temporaryFolder(t) : testMongo(t);
}

async function storeAt(t: TestContext, place: string): Promise<StoreWithItems> {
  const store = await openPlace(place);
  t.after(() => store.close());
  return store;
}

async function serverAt(t: TestContext, place: string, barrier: Barrier): Promise<TestServer> {
  const environment = place.startsWith('mongodb://') ? { MONGODB_URI: place } : { DATA_DIR: place };
  return serverOn(t, environment, { tapStore: (store) => barrier.tap(store) });
}

async function settled(server: TestServer): Promise<string> {
  let answer = await server.get('/items?limit=1&count=exact');
  for (let tries = 0; answer.status !== 200 && tries < 3; tries++) {
    await answer.arrayBuffer();
    answer = await server.get('/items?limit=1&count=exact');
  }
  return answer.text();
}

for (const name of ['sqlite', 'mongodb'] satisfies StoreName[])
  describe(`clear on ${name}`, () => {
    test('every row is removed and counted, and the next rows are found by every order', async (t) => {
      const place = await placeFor(t, name);
      if (place === null) return;
      const { items } = await storeAt(t, place);
      assert.deepEqual(await items.clear(NEVER), { rows: 0, is: 'exact' });
      await items.insert(rows(ROWS), 'fail');
      assert.deepEqual(await items.clear(NEVER), { rows: ROWS, is: 'exact' });
      assert.deepEqual(await items.count(ALL, 'exact', NEVER), { rows: 0, is: 'exact' });
      assert.equal((await items.insert(rows(3, 'new'), 'fail')).written, 3);
      await assert.rejects(items.clear(AbortSignal.abort(new Error('interrupted'))), /interrupted/);
      for (const plan of [ALL, { ...ALL, sort: 'price' }, { ...ALL, ...inCategory('b') }]) {
        const batch = await items.read(plan, {}, { rows: 10, bytes: 1_000_000 }, NEVER);
        assert.equal(batch.rows, 'equals' in plan ? 2 : 3);
        batch.release();
      }
      if (name === 'mongodb') return;
      const file = openRaw(place);
      assert.deepEqual(file.faults(), []);
      file.close();
    });

    test('a server beside it serves the new rows, and no stream mixes old and new ones', async (t) => {
      const place = await placeFor(t, name);
      if (place === null) return;
      const barrier = new Barrier();
      const server = await serverAt(t, place, barrier);
      const { items } = await storeAt(t, place);
      await items.insert(rows(ROWS), 'fail');
      barrier.hold((after) => after >= BATCH_ROWS - 1);
      const running = ['', '&sort=price_asc', '&category=a'].map((query) =>
        fetchUntilCut(`${server.url}/items/stream?format=json${query}`),
      );
      await barrier.held(running.length);
      await items.clear(NEVER);
      await items.insert(rows(5, 'new'), 'fail');
      barrier.release();
      for (const { bytes, whole } of await Promise.all(running)) {
        assert.ok(!bytes.includes('<new>'));
        assert.equal(whole, false);
      }
      assert.match(await settled(server), /"total":5,"totalIs":"exact"/);
    });
  });

test('a MongoDB collection keeps its options and indexes, and gets another identity', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const { items } = await storeAt(t, uri);
  await items.insert(rows(10), 'fail');
  const db = testClient(t, uri).db();
  const collection = db.collection('items');
  await collection.createIndexes([
    { key: { of: -1, price: 1 }, name: 'own', partialFilterExpression: { price: { $gt: 1 } } },
  ]);
  const described = async () => {
    const [info] = await db.listCollections<CollectionInfo>({ name: 'items' }).toArray();
    return { options: info?.options, indexes: await collection.indexes() };
  };
  const before = await described();
  const identity = (await items.describe(NEVER)).identity;
  await items.clear(NEVER);
  assert.deepEqual(await described(), before);
  assert.notEqual((await items.describe(NEVER)).identity, identity);
  assert.deepEqual(
    (await db.listCollections().toArray())
      .map((found) => found.name)
      .filter((found) => found.startsWith('items')),
    ['items'],
  );
});

test('what a killed removal left in MongoDB is used up, and a collection with documents is never dropped', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const { items } = await storeAt(t, uri);
  await items.insert(rows(10), 'fail');
  const db = testClient(t, uri).db();
  await db.createCollection('items.sluice-empty');
  assert.equal((await items.clear(NEVER)).rows, 10);
  await items.insert(rows(4), 'fail');
  await db.collection('items.sluice-empty').insertOne({ of: 'somebody' });
  await assert.rejects(items.clear(NEVER), /'items\.sluice-empty' has documents/);
  assert.equal((await items.count(ALL, 'exact', NEVER)).rows, 4);
  assert.equal(await db.collection('items.sluice-empty').countDocuments(), 1);
});
