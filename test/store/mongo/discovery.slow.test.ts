import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Int32, MaxKey, MinKey, type UUID } from 'bson';
import type { Document } from 'mongodb';
import { withOverrides } from '../../support/store/with-overrides.ts';
import { MongoConnection } from '../../../src/store/mongo/connection.ts';
import { MongoRefusal } from '../../../src/store/mongo/errors.ts';
import { indexFrom } from '../../../src/store/mongo/collection/index-list.ts';
import { Layouts } from '../../../src/store/mongo/collection/layouts.ts';
import type { MongoOptions } from '../../../src/store/mongo/mongo-store.ts';
import type { Index } from '../../../src/store/indexes.ts';
import type { ReadBatch } from '../../../src/store/batch.ts';
import type { Collection, Plan } from '../../../src/store/store.ts';
import { WAYS, testMongoStore } from '../../support/store/mongo/mongo.ts';
import { NEVER, PLENTY, readRows, walk } from '../../support/store/reading.ts';
import { testsWith } from '../../support/tests-with.ts';

/** A store beside a database that the test fills as another program would. Null: there is no mongod. */
async function openBeside(t: TestContext, options: Partial<MongoOptions> = {}) {
  const opened = await testMongoStore(t, { items: false, ...options });
  return opened && { ...opened, db: opened.client.db() };
}

const ROWS = { name: 'rows', collection: 'rows', indexes: [] };

/** The plan that orders by an index's last field before `_id`, under these values. */
async function planBy(rows: Collection, name: string, plan: Partial<Plan> & { sort: string }): Promise<Plan> {
  const index = (await rows.describe(NEVER)).indexes.find((one) => one.name === name);
  assert.ok(index && index.refused === undefined, `${name} can be used: ${index?.refused}`);
  return { index, direction: 1, ...plan };
}

async function refusedOf(rows: Collection): Promise<Record<string, string | undefined>> {
  return Object.fromEntries((await rows.describe(NEVER)).indexes.map(({ name, refused }) => [name, refused]));
}

const it = testsWith(openBeside);

it('every index is listed, and one that plans cannot use has the reason', async (open) => {
  const rows = open.db.collection('rows');
  const one = 1 as const;
  const descending = -1 as const;
  await rows.insertOne({ tags: ['x'], items: [{ price: 1 }], n: { deep: 1 } });
  await rows.createIndexes([
    { key: { a: one, b: descending, _id: descending, c: one }, name: 'further' },
    { key: { email: one }, name: 'email', unique: true },
    { key: { a: one }, name: 'partial', partialFilterExpression: { a: { $gt: 0 } } },
    { key: { b: one }, name: 'sparse', sparse: true },
    { key: { c: one }, name: 'hidden', hidden: true },
    { key: { d: one }, name: 'collated', collation: { locale: 'de' } },
    { key: { e: 'hashed' }, name: 'hashed' },
    { key: { f: 'text' }, name: 'text' },
    { key: { g: '2dsphere' }, name: 'sphere' },
    { key: { '$**': one }, name: 'wildcard' },
    { key: { 'list.0': one, _id: one }, name: 'numbered' },
    { key: { tags: one, _id: one }, name: 'tags' },
    { key: { n: one, 'items.price': one, _id: one }, name: 'price' },
    { key: { 'n.deep': one, _id: one }, name: 'deep' },
  ]);
  const collection = await open.store.open(ROWS);
  const array = 'take the arrays out, then drop the index and create it again';
  assert.deepEqual(await refusedOf(collection), {
    _id_: undefined,
    further: undefined,
    email: undefined,
    partial: 'it is partial, so it lacks rows',
    sparse: 'it is sparse',
    hidden: 'it is hidden',
    collated: 'it has a collation, so its order of texts is another',
    hashed: 'it is a hashed index',
    text: 'it is a text index',
    sphere: 'it is a 2dsphere index',
    wildcard: 'it is a wildcard index',
    numbered: 'list.0 has a number in its path, which may be a place in an array',
    tags: `some row has, or had, an array in tags: ${array}`,
    price: `some row has, or had, an array in items: ${array}`,
    deep: undefined,
  });
  const { indexes } = await collection.describe(NEVER);
  const named = (name: string) => indexes.find((index) => index.name === name);
  assert.deepEqual(named('further'), {
    name: 'further',
    keys: [
      { path: 'a', sign: 1 },
      { path: 'b', sign: -1 },
      { path: '_id', sign: -1 },
      { path: 'c', sign: 1 },
    ],
    isUnique: false,
  } satisfies Index);
  assert.equal(named('email')?.isUnique, true);
  assert.equal(named('_id_')?.isUnique, true);
});

it('collections that cannot be served are refused with the reason, and none is created', async (open) => {
  const { db, store } = open;
  await db.createCollection('rows');
  await db.createCollection('view', { viewOn: 'rows', pipeline: [] });
  await db.createCollection('series', { timeseries: { timeField: 'at' } });
  await db.createCollection('german', { collation: { locale: 'de' } });
  await db.createCollection('users');
  const end = db.collection('end');
  await end.insertOne({ _id: new MaxKey() as never });
  const refusals: [declaration: { collection: string; database?: string }, reason: RegExp][] = [
    [{ collection: 'view' }, /'[^']+\.view' is not served: it is a view, not a collection/],
    [{ collection: 'series' }, /a time series/],
    [{ collection: 'german' }, /a default collation \(de\)/],
    [{ collection: 'system.views' }, /belongs to MongoDB itself/],
    [{ collection: 'system.version', database: 'admin' }, /the database admin belongs to MongoDB itself/],
    [{ collection: 'users' }, /this server keeps its own records there/],
    [{ collection: 'end' }, /a row has the _id MinKey or MaxKey/],
    [{ collection: 'absent' }, /'[^']+\.absent' does not exist\. The server does not create it/],
  ];
  for (const [declaration, reason] of refusals)
    await assert.rejects(
      store.open({ ...declaration, name: 'rows', indexes: [['a']] }),
      (error) => error instanceof MongoRefusal && reason.test(error.message),
      String(reason),
    );
  const { databaseName: database } = db;
  const { collections } = await store.list();
  const found = collections.map(({ collection, refused }) => [collection, refused !== undefined]);
  assert.deepEqual(found, [
    ['end', false],
    ['german', true],
    ['rows', false],
    ['series', true],
    ['system.buckets.series', true],
    ['system.views', true],
    ['users', true],
    ['view', true],
  ]);
  assert.ok(collections.every((one) => one.database === database));
});

it('a store that serves existing collections only creates nothing in their database', async (open) => {
  const { db, store } = open;
  await db.collection('rows').insertMany([{ a: 1 }, { a: 2 }]);
  const before = await db.command({ dbHash: 1 });
  const rows = await store.open(ROWS);
  await readRows(rows, { sort: '_id', direction: 1 }, {}, { rows: 10, bytes: PLENTY });
  assert.deepEqual(await store.ping(), []);
  const after = await db.command({ dbHash: 1 });
  assert.deepEqual(after.collections, before.collections);
  assert.deepEqual(
    (await db.listCollections().toArray()).map(({ name }) => name),
    ['rows'],
  );
  assert.equal((await db.collection('rows').indexes()).length, 1);
});

test('ping names the reads of each open collection that are refused, and rejects when one cannot be read', async (t) => {
  const open = await openBeside(t, { manageIndexes: false });
  if (!open) return;
  const { db, store, warnings } = open;
  for (const name of ['rows', 'others']) await db.collection(name).insertOne({ a: 1 });
  await store.open({ ...ROWS, indexes: [['a']] });
  const others = await store.open({ name: 'others', collection: 'others', indexes: [['b']] });
  const faults = await store.ping();
  assert.deepEqual(
    faults.map((fault) => /an index on (.), _id is missing.*getCollection\("(\w+)"\)/.exec(fault)?.slice(1)),
    [
      ['a', 'rows'],
      ['b', 'others'],
    ],
  );
  await db.collection('others').drop();
  await others.read({ sort: '_id', direction: 1 }, {}, { rows: 1, bytes: 1 }, NEVER).catch(() => undefined);
  await assert.rejects(store.ping(), { code: 'store-unfit', message: "The collection 'others' is missing." });
  assert.ok(
    warnings.some((warning) => warning.includes("'others' is missing")),
    'the log says what to do',
  );
  others.close();
  assert.equal((await store.ping()).length, 1, 'one that was closed is not asked');
});

it('only declared indexes that are missing are created, each with a line in the log', async (open) => {
  const { db, store, notices } = open;
  const rows = db.collection('rows');
  await rows.insertOne({ tags: ['x', 'y'], other: ['x', 'y'] });
  await rows.createIndexes([{ key: { status: 1, at: -1, _id: -1 }, name: 'mine' }]);
  const indexes = [['status', 'at'], ['total'], ['tags', 'other']];
  const collection = await store.open({ ...ROWS, indexes });
  assert.deepEqual(
    notices.filter((notice) => notice.includes('created')),
    [`The server has created the index {"total":1,"_id":1} of '${db.databaseName}.rows'.`],
  );
  assert.match(open.warnings.join('\n'), /lacks the index .*"tags":1,"other":1.* MongoDB did not create it/);
  assert.deepEqual(Object.keys(await refusedOf(collection)), ['_id_', 'mine', 'total_1__id_1']);
});

for (const { name, lane } of WAYS)
  test(`a collection of another database is read ${name}, also rows of 2 MB`, async (t) => {
    const open = await openBeside(t, { lane });
    if (!open) return;
    const other = open.client.db(`${open.db.databaseName}_b`);
    const text = 'x'.repeat(2 * 1024 * 1024);
    for (let a = 0; a < 12; a++) await other.collection('rows').insertOne({ _id: a as never, a, text });
    await other.collection('rows').createIndex({ a: -1, _id: -1 });
    const rows = await open.store.open({ ...ROWS, database: other.databaseName });
    for (const direction of [1, -1] as const) {
      const plan = await planBy(rows, 'a_-1__id_-1', { sort: 'a', direction });
      const all = await readRows(rows, plan, {}, { rows: 100, bytes: PLENTY });
      assert.equal(all.rows.length, 12, 'a reply that stops at 16 MB is not the end');
      assert.equal(all.more, false);
      await (await released(rows, plan, 1)).confirm(NEVER);
    }
    await other.dropDatabase();
  });

/** The first rows of a plan, already released: only their proof is of interest. */
async function released(rows: Collection, plan: Plan, size: number): Promise<ReadBatch> {
  const batch = await rows.read(plan, {}, { rows: size, bytes: PLENTY }, NEVER);
  batch.release();
  return batch;
}

for (const { name: way, lane } of WAYS)
  for (const place of lane ? ['s', 'e', 'n.x'] : ['s'])
    test(`an array that arrives at ${place} during a walk never ends it as if it were whole, ${way}`, async (t) => {
      const open = await openBeside(t, { lane });
      if (!open) return;
      for (const [n, [size, direction, array]] of CASES.entries()) {
        const name = `rows${n}`;
        const table = open.db.collection(name);
        await table.insertMany(
          Array.from({ length: 200 }, (_, i) => ({ _id: new Int32(i) as never, e: 1, s: i, n: { x: i } })),
        );
        const sort = place === 'n.x' ? 'n.x' : 's';
        await table.createIndexes([{ key: { e: 1, [sort]: 1, _id: 1 }, name: 'by' }]);
        const rows = await open.store.open({ ...ROWS, collection: name });
        const equals = [{ path: 'e', value: new Int32(1) }];
        const plan = await planBy(rows, 'by', { sort, direction, equals });
        const row = {
          _id: new Int32(1_000) as never,
          e: place === 'e' ? [1, 2] : 1,
          s: place === 's' ? array : 300,
          n: place === 'n.x' ? [{ x: array[0] }, { x: array[1] }] : { x: 300 },
        };
        let isInserted = false;
        const walking = walk(rows, plan, size, async () => {
          if (isInserted) return;
          isInserted = true;
          await table.insertOne(row);
          if (n % 2 === 0) await table.deleteOne({ _id: row._id });
        });
        await assert.rejects(
          walking,
          { code: /^store-(unfit|unavailable)$/ },
          `pages of ${size}, direction ${direction}, ${String(array)}: ended cleanly`,
        );
        assert.match(
          (await refusedOf(rows)).by ?? '',
          /some row has, or had, an array in (s|e|n): take the arrays out/,
        );
        await assert.rejects(rows.read(plan, {}, { rows: 1, bytes: 1 }, NEVER), { code: 'store-unfit' });
        assert.match(
          open.warnings.at(-1) ?? '',
          new RegExp(`The index 'by' of '.*${name}' is not used: some row`),
        );
        await table.drop();
      }
    });

/** Page sizes, directions and arrays, of which the first ones once ended cleanly with 194 of 200 rows lost. */
const CASES = [1, 10, 199].flatMap((size) =>
  ([1, -1] as const).flatMap((direction) =>
    [
      [5, 199],
      [150, 170],
    ].map((array) => [size, direction, array] as const),
  ),
);

it('an index that is still being built is refused', async (open, t) => {
  const spec = { name: 'by', key: { a: 1, _id: 1 } };
  const connection = new MongoConnection(open.uri);
  t.after(() => connection.close());
  const { refused } = await indexFrom(connection, 'rows', { spec, isBuilding: true });
  assert.equal(refused, 'it is still being built');
  await open.db.createCollection('rows');
  const gone = await indexFrom(connection, 'rows', { spec, isBuilding: false });
  assert.equal(gone.refused, 'the server does not read it now');
});

it('a collection that is replaced while it is looked at is unavailable for now, and found by the next look', async (open, t) => {
  await open.db.collection('rows').insertOne({ _id: new Int32(1) as never });
  const connection = new MongoConnection(open.uri);
  t.after(() => connection.close());
  const replace = async () => {
    await open.db.dropCollection('rows');
    await open.db.collection('rows').insertOne({ _id: new Int32(2) as never });
  };
  let replacing: Promise<void> | undefined;
  const replaced = withOverrides(connection, {
    run: async (...call) => {
      const { filter } = call[0] as { readonly filter?: { readonly _id?: Document } };
      if (filter?._id?.$eq instanceof MinKey) await (replacing ??= replace());
      return connection.run(...call);
    },
  });
  const options = { ...ROWS, manage: false, onWarning: () => undefined };
  const layouts = new Layouts(replaced, options);
  t.after(() => layouts.close());
  await assert.rejects(async () => layouts.layout(), { code: 'store-unavailable' });
  await replacing; // the look may have failed by another find, between the drop and the insert
  const { identity } = await layouts.layout();
  const [now] = await open.db.listCollections({ name: 'rows' }).toArray();
  assert.equal(identity, (now as { info?: { uuid?: UUID } }).info?.uuid?.toString('hex').replaceAll('-', ''));
});

test('a collection that is refused is not looked at again', async (t) => {
  let looking = 0;
  const every = () => {
    looking++;
    return () => {
      looking--;
    };
  };
  const open = await openBeside(t, { watch: { every } });
  if (!open) return;
  const before = looking;
  await assert.rejects(open.store.open({ ...ROWS, collection: 'missing' }), MongoRefusal);
  assert.equal(looking, before);
});

test('a walk by the key has no clean end when a row came that no bounds can include', async (t) => {
  const open = await openBeside(t, { watch: { every: () => () => undefined } });
  if (!open) return;
  const rows = open.db.collection('rows');
  await rows.insertMany(Array.from({ length: 20 }, (_, _id) => ({ _id: _id as never })));
  const opened = await open.store.open(ROWS);
  const plan = await planBy(opened, '_id_', { sort: '_id' });
  const first = await released(opened, plan, 10);
  const all = await released(opened, plan, 100);
  await first.confirm(NEVER);
  await rows.insertOne({ _id: new MaxKey() as never });
  const unfit = { code: 'store-unfit' };
  const after = first.last ?? assert.fail();
  await first.confirm(NEVER);
  await assert.rejects(all.confirm(NEVER), unfit);
  await assert.rejects(opened.read(plan, { after }, { rows: 100, bytes: PLENTY }, NEVER), unfit);
});
