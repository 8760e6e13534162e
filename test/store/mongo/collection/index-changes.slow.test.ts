import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Collection, Document } from 'mongodb';
import type { ReadBatch } from '../../../../src/store/batch.ts';
import { MinKey } from '../../../../src/store/values/bson.ts';
import { chain } from '../../../../src/pipeline/chain.ts';
import { stagesOf } from '../../../../src/store/mongo/collection/index-list.ts';
import type { RowReader, Plan } from '../../../../src/store/store.ts';
import { fetchUntilCut } from '../../../support/faults/cutter.ts';
import { inCategory } from '../../../support/store/items.ts';
import { openStore, profiled, testClient } from '../../../support/store/mongo/mongo.ts';
import { testMongo } from '../../../support/store/mongo/mongod.ts';
import { NEVER, PLENTY, readRows } from '../../../support/store/reading.ts';
import { serverOn } from '../../../support/process/server.ts';
import { Barrier, BATCH_ROWS } from '../../../support/store/barrier.ts';
import { testsWith } from '../../../support/tests-with.ts';
import type { StoreWithItems } from '../../../support/store/with-items.ts';

const ROWS = 200;
const TWO = { rows: 2, bytes: PLENTY };
const BY_ID: Plan = { sort: '_id', direction: 1 };
const BY_PRICE: Plan = { sort: 'price', direction: 1 };

/** Changes that another program may make to the price index while it is read. The index keeps its name. */
const CHANGES: Readonly<Record<string, (items: Collection) => Promise<unknown>>> = {
  dropped: (items) => items.dropIndex('price_1__id_1'),
  'replaced by a partial one': replacedBy({ partialFilterExpression: { price: { $gte: ROWS * 0.9 } } }),
  'replaced by a sparse one': replacedBy({ sparse: true }),
  'replaced by a collated one': replacedBy({ collation: { locale: 'de' } }),
  hidden: (items) => hide(items, true),
  'made multikey': (items) => items.insertOne({ _id: 'array' as never, category: 'a', price: [5, 199] }),
};

function replacedBy(options: Document): (items: Collection) => Promise<unknown> {
  return async (items) => {
    await items.dropIndex('price_1__id_1');
    await items.createIndex({ price: 1, _id: 1 }, { name: 'price_1__id_1', ...options }, {});
  };
}

function hide(items: Collection, hidden: boolean): Promise<unknown> {
  return items.db.command({ collMod: 'items', index: { name: 'price_1__id_1', hidden } });
}

/** Creates the collection again, without a validator, and fills it. */
async function fill(items: Collection, options: Document = {}): Promise<void> {
  await items.db.dropCollection('items');
  await items.db.createCollection('items', options);
  await items.createIndexes([
    { key: { price: 1, _id: 1 } },
    { key: { category: 1, _id: 1 } },
    { key: { category: 1, price: 1, _id: 1 } },
  ]);
  await items.insertMany(
    Array.from({ length: ROWS }, (_, n) => ({ _id: n as never, category: 'a', price: n })),
    { writeConcern: { w: 'majority' } },
  );
}

/** A check of the indexes is at most a second old. The rest is a margin for a busy machine. */
const BACK_MS = 30_000;

const STREAMS = ['price_asc', 'price_desc', 'price_asc&format=json', 'price_desc&format=csv&fields=price'];

for (const [name, change] of Object.entries(CHANGES))
  test(`a stream whose price index is ${name} in mid-stream has no clean end that is not whole`, async (t) => {
    const uri = await testMongo(t);
    if (uri === null) return;
    const items = testClient(t, uri).db().collection('items');
    const barrier = new Barrier();
    await fill(items);
    // Otherwise it would create a sound index between the drop and the change.
    const manage = { MONGODB_MANAGE_INDEXES: name === 'dropped' ? 'true' : 'false' };
    const settings = { MONGODB_URI: uri, ...manage };
    const server = await serverOn(t, settings, { tapStore: (store) => barrier.tap(store) });
    for (const place of [1, 6]) {
      await fill(items);
      const asked = performance.now();
      while ((await server.get('/items?sort=price_asc')).status !== 200)
        assert.ok(performance.now() - asked < BACK_MS, 'reads do not recover');
      const behind = place * BATCH_ROWS - 1;
      barrier.hold((after, { direction }) =>
        direction === 1 ? after >= behind : after <= ROWS - 1 - behind,
      );
      const paths = [
        ...STREAMS.map((query) => `/items/stream?sort=${query}`),
        ...STREAMS.slice(0, 2).map((query) => `/items/stream?sort=${query}&checkpoints=true`),
        `/items/stream?sort=price_asc&limit=${ROWS}`,
      ];
      const running = paths.map((path) => fetchUntilCut(server.url + path));
      await barrier.held(paths.length);
      await change(items);
      barrier.release();
      for (const [n, { bytes, whole }] of (await Promise.all(running)).entries()) {
        const text = bytes.toString();
        const rows = text.match(/"id":\d+|^\d+,/gm)?.length ?? 0;
        assert.ok(!whole || rows === ROWS, `${paths[n]} ended with ${rows} rows, place ${place}`);
        assert.equal(text.includes('{"end":'), whole && text.includes('crc32'), paths[n]);
        if (name === 'made multikey' || name.startsWith('replaced')) assert.equal(whole, false, paths[n]);
      }
      const byId = await (await server.get('/items/stream?fields=price')).text();
      assert.ok(byId.split('\n').length > ROWS, 'reads without the price index continue');
    }
    assert.equal(server.slots.taken, 0);
  });

/** A store whose watch has a clock that only the test moves. */
async function watched(t: TestContext, uri: string) {
  let time = 0;
  const beats: (() => void)[] = [];
  const every = (ms: number, work: () => void) => {
    assert.equal(ms, 60_000);
    beats.push(work);
    return () => void beats.splice(0);
  };
  const watch = { now: () => time, every };
  const opened = await openStore(t, uri, { manageIndexes: false, watch });
  return { ...opened, beats, pass: (ms: number) => (time += ms) };
}

const it = testsWith(testMongo);

it('a page by price relies on a check of its index that is at most a second old, and an unfit index is refused', async (uri, t) => {
  const items = testClient(t, uri).db().collection('items');
  await fill(items);
  const { store, warnings, pass } = await watched(t, uri);
  const read = (plan: Plan) => readRows(store.items, plan, {}, TWO);
  for (const name of ['replaced by a partial one', 'replaced by a collated one', 'hidden', 'made multikey']) {
    assert.equal((await read(BY_PRICE)).rows.length, 2);
    await CHANGES[name]?.(items);
    pass(1_001);
    await assert.rejects(read(BY_PRICE), { status: 503 }, name);
    await assert.rejects(read(BY_PRICE), { code: 'store-unfit' }, name);
    assert.equal((await read(BY_ID)).rows.length, 2);
    assert.equal((await read({ ...BY_ID, ...inCategory('a') })).rows.length, 2);
    assert.match(warnings.join('\n'), /'price_1__id_1' .*dropIndex\("price_1__id_1"\).*createIndex\(/, name);
    assert.match((await store.ping()).join(), /'price_1__id_1'/, name);
    const logged = warnings.length;
    await assert.rejects(read(BY_PRICE), { code: 'store-unfit' });
    assert.equal(warnings.length, logged, 'it is reported once');
    await fill(items);
    pass(1_001);
    await read(BY_PRICE).catch(() => undefined); // a new collection is checked again
    assert.equal((await read(BY_PRICE)).rows.length, 2, name);
    assert.deepEqual(await store.ping(), []);
  }
});

it('the indexes are checked every minute without requests, until the store is closed', async (uri, t) => {
  const items = testClient(t, uri).db().collection('items');
  await fill(items);
  const { store, warnings, beats } = await watched(t, uri);
  assert.equal(beats.length, 1);
  await CHANGES.hidden?.(items);
  beats[0]?.();
  while (!warnings.some((warning) => warning.includes('is hidden')))
    await store.ping().catch(() => undefined);
  await items.db.dropCollection('items');
  beats[0]?.();
  while (!warnings.some((warning) => warning.includes('is missing')))
    await store.ping().catch(() => undefined);
  await assert.rejects(store.ping(), { code: 'store-unfit', message: "The collection 'items' is missing." });
  await store.close();
  assert.equal(beats.length, 0);
});

/** Walks by price in batches of 10, with `before` called before each batch but the first is handed on. */
async function walkByTens(store: StoreWithItems, before: (batch: ReadBatch) => unknown): Promise<number> {
  const read: RowReader['read'] = (plan, from, size, signal) =>
    store.items.read(plan, from, { ...size, rows: Math.min(size.rows, 10) }, signal);
  const waiting: RowReader = {
    read: async (...call) => {
      const batch = await read(...call);
      await before(batch);
      return batch;
    },
  };
  const first = await read(BY_PRICE, {}, { rows: 10, bytes: PLENTY }, NEVER);
  let rows = 0;
  for await (const batch of chain(waiting, BY_PRICE, first, Infinity, NEVER)) {
    rows += batch.rows;
    batch.release();
  }
  return rows;
}

/** Whether a find is for the lowest id, as each look at the key asks for once. The driver has a class of its own for it. */
function isForLowest(filter: Document | undefined): boolean {
  const { $eq } = (filter?._id ?? {}) as { readonly $eq?: { readonly _bsontype?: string } };
  return $eq?._bsontype === 'MinKey';
}

it('the batches by an index share looks at the collection for 100 ms, and have a query plan each', async (uri, t) => {
  const db = testClient(t, uri).db();
  await fill(db.collection('items'));
  const { store, pass } = await watched(t, uri);
  await walkByTens(store, () => undefined);
  for (const [ms, least, most] of [
    [0, 1, 1],
    [60, ROWS / 20 - 1, ROWS / 20 + 1],
    [101, ROWS / 10 - 1, ROWS / 10 + 1],
  ] as const) {
    pass(99); // the last look was at an end
    const profile = await profiled(db, async () => {
      assert.equal(await walkByTens(store, () => pass(ms)), ROWS);
    });
    const count = (is: (command: Document) => boolean) =>
      profile.filter(({ command }) => is(command as Document)).length;
    assert.equal(
      count((command) => Object.hasOwn(command, 'explain')),
      ROWS / 10,
      `${ms} ms between batches`,
    );
    const looks = count(({ filter }) => isForLowest(filter as Document | undefined));
    assert.ok(looks >= least && looks <= most, `${looks} looks, ${ms} ms between batches`);
  }
});

for (const [name, change] of Object.entries({
  'the collection is made anew': fill,
  'a row has the id MinKey': (items: Collection) =>
    items.insertOne({ _id: new MinKey() as never, price: 1 }, { writeConcern: { w: 'majority' } }),
}))
  test(`a stream does not end when ${name} within the time of a shared look`, async (t) => {
    const uri = await testMongo(t);
    if (uri === null) return;
    const items = testClient(t, uri).db().collection('items');
    await fill(items);
    const { store, pass } = await watched(t, uri);
    for (const isDue of [
      (batch: ReadBatch) => batch.more, // between two batches
      (batch: ReadBatch) => !batch.more, // between the last batch and its proof
    ]) {
      await fill(items);
      while ((await walkByTens(store, () => undefined).catch(() => null)) !== ROWS) pass(1_001);
      let changing: Promise<unknown> | undefined;
      const walk = walkByTens(store, async (batch) => {
        if (!changing && isDue(batch)) await (changing = change(items));
      });
      await assert.rejects(walk, ({ code }: { code: string }) =>
        /store-unfit|collection-replaced/.test(code),
      );
      assert.ok(changing);
      await changing; // the walk may end while it is under way
    }
  });

function isMultikey(plan: unknown): boolean {
  return stagesOf(plan).some(({ isMultiKey }) => isMultiKey === true);
}

test('isMultiKey is read from the stages of a plan, whatever its names and bounds contain', () => {
  const stage = { stage: 'IXSCAN', indexName: '"isMultiKey":true', isMultiKey: false };
  const bounds = { category: ['["isMultiKey":true]'], isMultiKey: true };
  assert.equal(isMultikey({ winningPlan: { stage: 'FETCH', inputStage: { ...stage, bounds } } }), false);
  const multikey = { ...stage, isMultiKey: true };
  for (const plan of [
    { winningPlan: { stage: 'LIMIT', inputStage: { stage: 'FETCH', inputStage: multikey } } },
    { winningPlan: { queryPlan: { stage: 'FETCH', inputStage: multikey } } },
    { winningPlan: { stage: 'SHARD_MERGE', shards: [{ winningPlan: multikey }] } },
  ])
    assert.equal(isMultikey(plan), true);
});
