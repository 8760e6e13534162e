import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Db } from 'mongodb';
import { jsonOf, linesOf, textOf } from '../support/answers.ts';
import { fetchUntilCut } from '../support/faults/cutter.ts';
import { awaited, order } from '../support/exports/exports.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { runPullOf } from '../support/pull/pulling.ts';
import { onMongo } from '../support/process/each-server.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';
import { Barrier, BATCH_ROWS } from '../support/store/barrier.ts';
import { temporaryFolder } from '../support/directory.ts';

const ROWS = process.env.LONG ? 2_000 : 500;
const LAST = ROWS / BATCH_ROWS;
/** The batches before which the collection is replaced: the second, one inside, the last, or all. */
const PLACES = process.env.LONG
  ? Array.from({ length: LAST - 1 }, (_, n) => n + 1)
  : [1, LAST >> 1, LAST - 1];

/** What happens to a collection in mid-stream. */
const REPLACEMENTS = {
  dropped: (db: Db) => db.dropCollection('items'),
  'renamed away': (db: Db) => db.renameCollection('items', 'gone', { dropTarget: true }),
  'replaced by another one': (db: Db) => db.renameCollection('next', 'items', { dropTarget: true }),
};

/** The streams that run meanwhile. The second half of the set is a part. */
const STREAMS = [
  'sort=id_asc',
  'sort=id_desc',
  'sort=price_asc&format=json',
  'sort=price_desc&format=csv&fields=of',
  'category=a&format=json',
  'checkpoints=true',
  'checkpoints=true&sort=price_desc',
  'checkpoints=true&consistency=snapshot',
  'consistency=snapshot&sort=price_asc',
  `limit=${ROWS}`,
];

/** Fills a collection of this name, created as `sluice` creates it. Each row names its collection. */
async function fill(db: Db, name: string, rows = ROWS): Promise<void> {
  await db.dropCollection(name);
  await db.createCollection(name, { clusteredIndex: { key: { _id: 1 }, unique: true } });
  const items = db.collection(name);
  await items.createIndexes([
    { key: { price: 1, _id: 1 } },
    { key: { category: 1, _id: 1 } },
    { key: { category: 1, price: 1, _id: 1 } },
  ]);
  await items.insertMany(
    Array.from({ length: rows }, (_, n) => ({ _id: n as never, category: 'a', price: n, of: `<${name}>` })),
    { writeConcern: { w: 'majority' } },
  );
}

interface Shop {
  readonly server: TestServer;
  readonly db: Db;
  readonly barrier: Barrier;
}

async function open(t: TestContext): Promise<Shop | null> {
  const uri = await testMongo(t);
  if (uri === null) return null;
  const db = testClient(t, uri).db();
  const barrier = new Barrier();
  await fill(db, 'items');
  const server = await serverOn(t, { MONGODB_URI: uri }, { tapStore: (store) => barrier.tap(store) });
  return { server, db, barrier };
}

/** The server's answer to a page after it has checked the collection again. */
async function settled({ server }: Shop): Promise<Response> {
  let answer = await server.get('/items?limit=1');
  for (let tries = 0; answer.status !== 200 && tries < 3; tries++) {
    await answer.arrayBuffer();
    answer = await server.get('/items?limit=1');
  }
  return answer;
}

async function codeOf(server: TestServer, path: string): Promise<string> {
  const response = await server.get(path);
  const { code } = (await response.json()) as { code?: string };
  return `${response.status} ${String(code)}`;
}

/**
 * The result of a stream: its text, and whether it claims to be whole. A refusal before the first row has neither.
 */
async function outcomeOf(url: string): Promise<{ text: string; whole: boolean }> {
  try {
    const { bytes, whole } = await fetchUntilCut(url);
    return { text: bytes.toString(), whole };
  } catch (error) {
    return { text: String(error), whole: false };
  }
}

onMongo(open, (test) => {
  for (const [name, replace] of Object.entries(REPLACEMENTS))
    test(`reads of a collection that is ${name} in mid-stream, at ${PLACES.length} places, are cut, failed or refused in every form`, async (shop) => {
      const { server, db, barrier } = shop;
      for (const place of PLACES) {
        await fill(db, 'items');
        await fill(db, 'next');
        await (await settled(shop)).arrayBuffer();
        const parts = (await jsonOf(server.get('/items/partitions?n=2'))) as {
          partitions: { url: string }[];
        };
        const part = parts.partitions[1]?.url ?? assert.fail('no parts');
        const proved = await linesOf(server.get('/items/stream?checkpoints=true&limit=30'));
        const { end } = JSON.parse(proved.at(-1) ?? '') as { end: { cursor: string } };

        const behind = place * BATCH_ROWS - 1;
        barrier.hold((after, { direction }) =>
          direction === 1 ? after >= behind : after <= ROWS - 1 - behind,
        );
        const streams = [...STREAMS.map((query) => `/items/stream?${query}`), part];
        const running = streams.map((path) => outcomeOf(server.url + path));
        const { id } = await order(server.url, { format: 'csv', fields: ['of'], sort: 'price_asc' });
        await barrier.held(streams.length + 1);
        await replace(db);
        barrier.release();

        for (const [n, { text, whole }] of (await Promise.all(running)).entries()) {
          const what = `${streams[n]}, place ${place}`;
          assert.equal(whole, false, `${what} ended as if it were whole`);
          assert.ok(!text.includes('{"end":'), `${what} has a proof of its end`);
          assert.ok(!text.includes('<next>'), `${what} has rows of both`);
        }
        const failed = await awaited(
          server.url,
          id,
          ({ state }) => state !== 'queued' && state !== 'running',
        );
        assert.equal(failed.state, 'failed');
        assert.equal(failed.problem?.code, 'collection-replaced');

        const isBack = name.startsWith('replaced');
        await (await settled(shop)).arrayBuffer();
        const gone = isBack ? '410 collection-replaced' : '503 store-unfit';
        for (const path of [`/items/stream?cursor=${end.cursor}`, part])
          assert.equal(await codeOf(server, path), gone, path);
        for (const path of [
          `/items?cursor=${end.cursor}`,
          '/items/1',
          '/items?count=exact',
          '/items/partitions',
        ])
          assert.equal(await codeOf(server, path), isBack ? '200 undefined' : gone, path);
        assert.equal((await server.get('/readyz')).status, isBack ? 200 : 503);
        assert.equal((await db.listCollections({ name: 'items' }).toArray()).length, isBack ? 1 : 0);
      }
      await server.released();
    });

  test('a collection that is dropped and created again with ids of another type is served', async (shop) => {
    const { server, db } = shop;
    assert.equal((await server.get('/items/7')).status, 200);
    await db.dropCollection('items');
    assert.equal((await server.get('/items/7')).status, 503); // and not 404
    await db.collection('items').insertOne({ _id: 'seven' as never, category: 'a', price: 7 });
    await (await settled(shop)).arrayBuffer();
    assert.equal((await server.get('/items/seven')).status, 200);
  });

  for (const parallel of [1, 3])
    test(`a pull over ${parallel} connections does not continue in another collection, and says to start over`, async (shop, t) => {
      const { server, db, barrier } = shop;
      const rows = 33_000; // so that each part has a checkpoint inside
      await fill(db, 'items', rows);
      await fill(db, 'next', rows);
      await (await settled(shop)).arrayBuffer();
      const file = join(await temporaryFolder(t), 'items.ndjson');
      const size = rows / parallel;
      barrier.hold((after, { ids }) => after >= (ids?.from ? after - (after % size) : 0) + size * 0.95);
      const pulling = runPullOf([`${server.url}/items/stream`, '-o', file, '--parallel', String(parallel)]);
      await barrier.held(parallel);
      await REPLACEMENTS['replaced by another one'](db);
      barrier.release();
      const { code, text } = await pulling;
      assert.equal(code, 1, text);
      assert.match(text, /[Ss]tart again/);
      assert.equal(existsSync(file), false);
      const again = await runPullOf([
        `${server.url}/items/stream`,
        '-o',
        file,
        '--parallel',
        String(parallel),
      ]);
      assert.equal(again.code, 1, again.text);
      assert.match(again.text, /[Ss]tart again/);
      assert.equal(existsSync(file), false);
    });
});

test('the first request of a resource after its collection was replaced reads the new one', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const db = testClient(t, uri).db();
  const make = async (name: string, of: string) => {
    await db.collection(name).insertMany([1, 2, 3].map((n) => ({ _id: n as never, n, mail: `m${n}`, of })));
    await db.collection(name).createIndexes([{ key: { n: 1, _id: 1 } }, { key: { mail: 1 }, unique: true }]);
  };
  await make('orders', '<first>');
  const server = await serverOn(t, { MONGODB_URI: uri, EXPOSE: 'orders' });
  for (const [n, path] of [
    '/orders?sort=n_desc',
    '/orders?mail=m2',
    '/orders/stream?n.gte=2',
    '/orders?n.eq=2&offset=0',
    '/orders/stream?consistency=snapshot',
    '/orders/stream',
    '/orders/changes',
    '/orders/2',
    '/orders/values?field=n',
    '/orders?n.eq=2&count=exact',
    '/orders/partitions',
  ].entries()) {
    await make('next', `<${n}>`);
    await db.renameCollection('next', 'orders', { dropTarget: true });
    const text = await textOf(server.get(path));
    if (!/values|partitions|changes/.test(path)) assert.ok(text.includes(`<${n}>`), `${path}: ${text}`);
  }
});
