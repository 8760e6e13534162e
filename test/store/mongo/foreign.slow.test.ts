import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Document } from 'mongodb';
import { Int32, MaxKey, MinKey } from '../../../src/store/values/bson.ts';
import { openStore, testClient } from '../../support/store/mongo/mongo.ts';
import { testMongo } from '../../support/store/mongo/mongod.ts';
import { PLENTY, readRows } from '../../support/store/reading.ts';
import { startWireProxy } from '../../support/store/mongo/wire-proxy.ts';

/** What a server that is not MongoDB ignores of a find, and what the refusal names. */
const IGNORED: readonly (readonly [name: string, ignore: (find: Document) => void])[] = [
  ['min', (find) => delete find.min],
  ['max', (find) => delete find.max],
  ['hint', (find) => delete find.hint],
  ['collectionUUID', (find) => delete find.collectionUUID],
  [
    'snapshot',
    ({ readConcern }) => {
      if (readConcern) delete (readConcern as Document).atClusterTime;
    },
  ],
];
const ROWS = ['a', 'b', 'c'].map((_id) => ({ _id, category: 'a', price: 1 }));

/** A proxy in front of a database with items and users, which another server has created. */
async function proxied(t: TestContext, rows: readonly Document[] = ROWS) {
  const uri = await testMongo(t);
  if (uri === null) return null;
  await openStore(t, uri);
  const db = testClient(t, uri).db();
  if (rows.length > 0) await db.collection('items').insertMany([...rows]);
  return { proxy: await startWireProxy(t, uri), db };
}

const onFinds = (ignore: (find: Document) => void) => (command: Document) => {
  if (command.find !== undefined) ignore(command);
};

test('a server that ignores what a find says is refused at the start, in a sentence that says so', async (t) => {
  for (const rows of [ROWS, []]) {
    const made = await proxied(t, rows);
    if (!made) return;
    for (const [name, ignore] of IGNORED.filter(([each]) => each !== 'snapshot' || rows.length > 0)) {
      made.proxy.onCommand = onFinds(ignore);
      const message = new RegExp(`^The server is not MongoDB: it ignores ${name}\\b.*\\.$`);
      await assert.rejects(
        openStore(t, made.proxy.uri),
        { name: 'MongoRefusal', message },
        `${rows.length} rows`,
      );
    }
    made.proxy.onCommand = () => undefined;
    await openStore(t, made.proxy.uri);
  }
});

for (const [name, ignore] of IGNORED)
  test(`a server that ignores ${name} and takes the place of MongoDB gives no row`, async (t) => {
    const made = await proxied(t);
    if (!made) return;
    const { store, warnings } = await openStore(t, made.proxy.uri);
    const plan = { sort: '_id', direction: 1 } as const;
    const read = () => readRows(store.items, plan, {}, { rows: 9, bytes: PLENTY });
    assert.equal((await read()).rows.length, 3);
    made.proxy.onCommand = onFinds(ignore);
    made.proxy.stop();
    // The first read may fail before the driver knows that the server is gone. The others fail because it knows.
    for (let reads = 0; reads < 3; reads++) await assert.rejects(read(), { code: 'store-unavailable' });
    made.proxy.start();
    const isRefused = () => warnings.some((message) => message.includes(`ignores ${name}`));
    for (let tries = 0; !isRefused(); tries++) {
      assert.ok(tries < 1000, 'the server is not refused');
      await assert.rejects(read(), { code: /^store-(unavailable|unfit)$/ });
    }
    await assert.rejects(read(), { code: 'store-unfit' });
  });

test('rows of every kind of id pass the probes, and the ends of the order are refused for what they are', async (t) => {
  const ids = [null, NaN, '', 0, -1.5, true, new Date(0), {}, { a: undefined }];
  const made = await proxied(
    t,
    ids.map((_id) => ({ _id, category: 'a', price: 1 })),
  );
  if (!made) return;
  await openStore(t, made.proxy.uri);
  for (const _id of [new MaxKey(), new MinKey()]) {
    await made.db.command({ insert: 'items', documents: [{ _id, category: 'a', price: 1 }] });
    await assert.rejects(openStore(t, made.proxy.uri), { message: /a row has the _id MinKey or MaxKey/ });
  }
});

test('probes change nothing', async (t) => {
  const made = await proxied(t);
  if (!made) return;
  const writes: string[] = [];
  made.proxy.onCommand = (command) => {
    const [name = ''] = Object.keys(command);
    if (/^(insert|update|delete|create|drop|findAndModify|collMod)/.test(name)) writes.push(name);
  };
  await openStore(t, made.proxy.uri);
  assert.deepEqual(writes, []);
});

test('MongoDB before 6.0 is refused', async (t) => {
  const made = await proxied(t);
  if (!made) return;
  made.proxy.onReply = (reply) => {
    if (reply.maxWireVersion !== undefined) reply.maxWireVersion = new Int32(13);
  };
  await assert.rejects(openStore(t, made.proxy.uri), {
    message: /^sluice needs MongoDB 6\.0 or newer[^.]*\.$/,
  });
});
