import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { Collection as DriverCollection, Document } from 'mongodb';
import {
  BSON,
  Binary,
  Decimal128,
  Double,
  Int32,
  Long,
  ObjectId,
  Timestamp,
} from '../../../../src/store/values/bson.ts';
import { keyOf, makeBookmark } from '../../../../src/store/bookmark.ts';
import type { AppError } from '../../../../src/base/errors.ts';
import type { ChangeFeed, FeedPlace } from '../../../../src/store/change-feed.ts';
import type { OwnedCollection } from '../../../../src/store/store.ts';
import { feedOf, isProblem, keysSince, lookUp, openStreams, until } from '../../../support/store/changes.ts';
import { openStore, profiled, testMongoStore, type OpenMongo } from '../../../support/store/mongo/mongo.ts';
import { NEVER } from '../../../support/store/reading.ts';
import { testsWith } from '../../../support/tests-with.ts';

/** A row of any shape. The driver's types want a plain type for an id. */
type Row = Document & { _id: string | number };

/** A feed, and its collection through the driver alone. */
interface Opened extends OpenMongo {
  readonly rows: OwnedCollection;
  readonly feed: ChangeFeed;
  readonly driver: DriverCollection<Row>;
}

/** A resource of rows of any shape. */
async function opened(t: TestContext, name = 'rows', options: Document = {}): Promise<Opened | null> {
  const store = await testMongoStore(t);
  if (!store) return null;
  await store.client.db().createCollection(name, options);
  return { ...store, ...(await resource(store, name)) };
}

async function resource({ store, client }: Pick<OpenMongo, 'store' | 'client'>, name: string) {
  const rows = await store.open({ name, collection: name, indexes: [['color'], ['a.b']] });
  const driver = client.db().collection<Row>(name);
  return { rows, feed: feedOf(rows), driver };
}

const idsOf = (keys: readonly Uint8Array[]) => keys.map((key): unknown => BSON.deserialize(key)._id);
const ask = (feed: ChangeFeed, place: Awaited<ReturnType<ChangeFeed['now']>>, most = 1_000, waitMs = 0) =>
  feed.read(place, { most, waitMs }, undefined, NEVER);

const it = testsWith(opened);

it('a feed returns everything in pieces, for ids of any type', async (open) => {
  const { feed } = open;
  const ids = [
    ...[null, true, 7, new Double(7.5), new Double(-0), Long.fromBigInt(2n ** 60n), 'text', '', 'nul\0é'],
    ...[Decimal128.fromString('7.10'), Decimal128.fromString('1E-6000'), Decimal128.fromString('Infinity')],
    ...[new Double(NaN), Long.fromNumber(5), new Date(0), new Timestamp({ t: 5, i: 6 }), new ObjectId()],
    ...[
      new Binary(randomBytes(20), 0),
      new Map([
        ['b', 1],
        ['1', 2],
        ['_bsontype', 3],
      ] as const),
    ],
    ...[
      { nested: { deep: new Double(1) }, n: new Double(2) },
      'x'.repeat(900),
      'y'.repeat(5_000),
      'z'.repeat(100_000),
    ],
  ];
  const place = await feed.now(NEVER);
  await open.client.db().command({ insert: 'rows', documents: ids.map((_id) => ({ _id })) });
  const keys = ids.map((_id) => makeBookmark({ _id }));
  for (const most of [1, 2, 1_000]) {
    const { keys: returned, longest } = await keysSince(feed, place, most);
    assert.ok(longest <= most, `${longest} keys by ${most}`);
    assert.deepEqual(
      returned.map((key) => Buffer.from(key)),
      keys.map((key) => Buffer.from(key)),
      `by ${most}`,
    );
  }
  const rows = await lookUp(feed, keys);
  assert.deepEqual(
    new Set(rows.map((row) => row.toString('hex'))),
    new Set(keys.map((key) => Buffer.from(key).toString('hex'))),
  );
});

it('a feed returns a transaction in pieces, which is not at its end before its last change', async ({
  feed,
  driver,
  client,
}) => {
  const place = await feed.now(NEVER);
  const transact = async (ids: readonly string[]) =>
    client.withSession((session) =>
      session.withTransaction(async () => {
        for (const _id of ids) await driver.insertOne({ _id }, { session });
      }),
    );
  await transact(['a', 'b', 'c', 'd', 'e', 'f']);
  const { pieces, keys } = await keysSince(feed, place, 1);
  assert.deepEqual(idsOf(keys), ['a', 'b', 'c', 'd', 'e', 'f']);
  assert.ok(pieces >= 6, `${pieces} pieces`);
  // One reply of the server has only a part of these.
  const before = await feed.now(NEVER);
  const many = Array.from({ length: 150 }, (_, n) => `many ${n}`);
  await transact(many);
  assert.deepEqual(idsOf((await keysSince(feed, before, 100)).keys), many);
  // No place between these changes fits into a cursor, and the feed returns none of them twice.
  const after = await feed.now(NEVER);
  const long = ['a', 'b', 'c'].map((text) => text.repeat(2_000));
  await transact(long);
  await driver.insertOne({ _id: 'behind' });
  for (const most of [1, 2]) {
    const read = await keysSince(feed, after, most);
    assert.deepEqual(idsOf(read.keys), [...long, 'behind'], `by ${most}`);
  }
});

it('the place of an empty answer moves on with the history of others, so that it does not expire', async ({
  feed,
  client,
}) => {
  const place = await feed.now(NEVER);
  await client.db().collection('others').insertOne({});
  let next = place;
  for (let isUpToDate = false; !isUpToDate;) {
    const empty = await ask(feed, next, 1_000, 50);
    assert.deepEqual(empty.keys, []);
    ({ next, isUpToDate } = empty);
  }
  assert.ok(Buffer.compare(next.token, place.token) !== 0);
});

it('a reader that waits leaves with the reason of its signal, and when the store is closed', async (open) => {
  const { feed, store } = open;
  const place = await feed.now(NEVER);
  const controller = new AbortController();
  const reading = feed.read(place, { most: 1, waitMs: 60_000 }, undefined, controller.signal);
  const other = ask(feed, place, 1, 60_000);
  await until('the stream is open', async () => (await openStreams(open.client)).length === 1);
  const left = [assert.rejects(reading, /gone/), assert.rejects(other, isProblem('store-unavailable'))];
  controller.abort(new Error('gone'));
  await left[0];
  await store.close();
  await left[1];
  await assert.rejects(feed.now(NEVER), isProblem('store-unavailable'));
  await until('the server keeps no cursor', async () => (await openStreams(open.client)).length === 0);
});

it('hundreds of readers of two collections share one change stream', async (open) => {
  const { feed, driver, client } = open;
  await client.db().createCollection('more');
  const other = await resource(open, 'more');
  const places = await Promise.all([feed.now(NEVER), other.feed.now(NEVER)]);
  const count = 100;
  let done = 0;
  const readers = [feed, other.feed].flatMap((one, n) =>
    Array.from({ length: count }, async () => {
      const read = await ask(one, places[n] ?? places[0], 10, 60_000);
      done++;
      return idsOf(read.keys);
    }),
  );
  // A reader may look into its own history before it waits.
  await until('one stream is left', async () => (await openStreams(client)).length === 1);
  await client.db().collection('foreign').insertOne({});
  assert.equal(done, 0);
  await driver.insertOne({ _id: 'here' });
  assert.deepEqual(await Promise.all(readers.slice(0, count)), Array(count).fill(['here']));
  assert.equal(done, count, 'the readers of the other collection wait on');
  await until('one stream is left again', async () => (await openStreams(client)).length <= 1);
  await other.driver.insertOne({ _id: 'there' });
  assert.deepEqual(await Promise.all(readers.slice(count)), Array(count).fill(['there']));
});

it('a stream that the server ends is opened again where it was', async ({ feed, driver, client }) => {
  const waiting = ask(feed, await feed.now(NEVER), 10, 60_000);
  const streams = async () =>
    (await openStreams(client)).map(({ cursor }) => (cursor as Document).cursorId as Long);
  await until('the stream is open', async () => (await streams()).length === 1);
  const cursors = await streams();
  await client.db().command({ killCursors: '$cmd.aggregate', cursors });
  await until('another stream is open', async () => {
    const [now] = await streams();
    return now !== undefined && String(now) !== String(cursors[0]);
  });
  await driver.insertOne({ _id: 'after' });
  assert.deepEqual(idsOf((await waiting).keys), ['after']);
});

it('rows are looked up with the values of the plan as they are now', async ({ feed, driver }) => {
  await driver.insertMany([
    { _id: 1, color: 'red' },
    { _id: 2, color: 'blue' },
    { _id: 3, color: null },
    { _id: 4 },
    { _id: new Double(5), color: 'red' },
    { _id: 6, a: { b: 'red' } },
    { _id: 7, a: 1 },
  ] as Row[]);
  const keys = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => makeBookmark({ _id: new Int32(n) }));
  const found = async (path: string, value: unknown) =>
    new Set(
      (await lookUp(feed, keys, { sort: '_id', direction: 1, equals: [{ path, value }] })).map((row) =>
        Number(BSON.deserialize(row)._id),
      ),
    );
  assert.deepEqual(await found('color', 'red'), new Set([1, 5]));
  assert.deepEqual(await found('color', null), new Set([3, 4, 6, 7]));
  assert.deepEqual(await found('a.b', 'red'), new Set([6]));
  assert.deepEqual(await found('a.b', null), new Set([1, 2, 3, 4, 5, 7]));
  assert.equal((await lookUp(feed, keys)).length, 7);
  const [five] = await lookUp(feed, [makeBookmark({ _id: new Int32(5) })]);
  assert.ok(keyOf(five as never)._id instanceof Double, 'the key of the row itself');
});

it('a value of a field without index is looked up as reads find it: not within arrays', async (open, t) => {
  const { feed, driver } = open;
  const indexes = [{ key: { sku: 1 }, name: 'sku_1', unique: true }];
  await open.client.db().command({ createIndexes: 'rows', indexes });
  await driver.insertMany([
    { _id: 1, sku: 'a', tags: 'red' },
    { _id: 2, sku: 'b', tags: ['red'] },
    { _id: 3, sku: 'c', tags: [{ name: 'red' }] },
    { _id: 4, sku: 'd', tags: { name: 'red' } },
  ] as Row[]);
  const again = await resource({ ...open, store: (await openStore(t, open.uri)).store }, 'rows');
  const index = (await again.rows.describe(NEVER)).indexes.find(({ name }) => name === 'sku_1');
  assert.ok(index);
  const keys = [1, 2, 3, 4].map((n) => makeBookmark({ _id: new Int32(n) }));
  const found = async (sku: string, path: string) => {
    const equals = [
      { path: 'sku', value: sku },
      { path, value: 'red' },
    ];
    const plan = { sort: '_id', direction: 1, index, equals } as const;
    const rows = await lookUp(again.feed, keys, plan);
    const read = await again.rows.read(plan, {}, { rows: 10, bytes: 10_000 }, NEVER);
    read.release();
    assert.equal(rows.length, read.rows, `as a read finds ${sku}`);
    return rows.length;
  };
  assert.deepEqual(await Promise.all(['a', 'b'].map((sku) => found(sku, 'tags'))), [1, 0]);
  assert.deepEqual(await Promise.all(['c', 'd'].map((sku) => found(sku, 'tags.name'))), [0, 1]);
  assert.deepEqual((await lookUp(feed, keys)).length, 4);
});

for (const kind of ['plain', 'clustered'])
  test(`a look-up in a ${kind} collection is whole, also beyond the size of a reply, and reads only its rows`, async (t) => {
    const clusteredIndex = { key: { _id: 1 }, unique: true };
    const open = await opened(t, 'rows', kind === 'clustered' ? { clusteredIndex } : {});
    if (!open) return;
    const { feed, driver, slots, client } = open;
    const filler = 'x'.repeat(kind === 'clustered' ? 7_000 : 70_000); // 20 MB are more than a reply holds
    const some = Array.from({ length: 300 }, (_, n) => n * 100);
    await driver.insertMany(some.map((_id) => ({ _id, filler })));
    await driver.insertMany(Array.from({ length: 500 }, (_, n) => ({ _id: 10 * n + 0.5 })));
    const keys = some.map((n) => makeBookmark({ _id: new Int32(n) }));
    for (const size of [
      { rows: 1_000, bytes: 64 * 1024 * 1024 },
      { rows: 10, bytes: 100_000 },
    ]) {
      const rows = await lookUp(feed, keys, { sort: '_id', direction: 1 }, size);
      assert.equal(rows.length, 300);
      assert.equal(new Set(rows.map((row) => Number(BSON.deserialize(row)._id))).size, 300);
    }
    assert.equal(slots.taken, 0);
    const ends = [0, 4_900].map((n) => makeBookmark({ _id: new Int32(n) }));
    const profiles = await profiled(client.db(), async () => {
      assert.equal((await lookUp(feed, ends)).length, 2);
    });
    const finds = profiles.filter(({ command }) => (command as Document).find === 'rows');
    const examined = finds.reduce((sum, { docsExamined }) => sum + Number(docsExamined), 0);
    assert.ok(finds.length > 0 && examined <= 6, `${examined} documents examined`);
  });

it('a place that this store did not give is refused', async ({ feed, driver }) => {
  const place = await feed.now(NEVER);
  await driver.insertMany([{ _id: 1 }, { _id: 2 }]);
  const { next, keys } = await ask(feed, place, 1);
  assert.equal(keys.length, 1);
  const cursor = isProblem('invalid-cursor');
  const refused = (token: Uint8Array) =>
    assert.rejects(ask(feed, { token }), cursor, Buffer.from(token).toString('hex'));
  for (const token of [[], [0], [1], [2], [3, 0, 0x82], [1, ...Array<number>(7).fill(0)]])
    await refused(Uint8Array.from(token));
  await refused(Buffer.concat([next.token, randomBytes(2_000)]));
  await refused(next.token.slice(0, -3));
  await refused(Uint8Array.from(next.token, (byte, n) => (n === next.token.length - 5 ? byte ^ 0x40 : byte)));
  // Whatever the server says about a token, it is the token's fault.
  for (const bytes of [
    ...'2c 2b04 2b042c0100 2b042c0100296e5a1004 2b7f2c01 295a 46 3c5a 01 ff'.split(' '),
    '',
  ])
    for (const end of ['', '04', '0004']) {
      const made = Buffer.from(
        `${Buffer.from(next.token.slice(0, 11)).toString('hex')}${bytes}${end}`,
        'hex',
      );
      if (made.length > 11) await refused(made);
    }
  const future = (place.seen ?? 0n) + (60n << 32n);
  await refused(feed.at(future).token);
  await assert.rejects(ask(feed, { token: place.token, seen: future }), cursor);
});

it('a time that is one tick ahead is refused like any later one, by the feed and by reads', async ({
  feed,
  rows,
}) => {
  // Other databases of the server let its clock go on: then the time is one of the past.
  const outcome = (read: Promise<unknown>) =>
    read.then(
      () => 'read',
      (error: unknown) => (error as AppError).code,
    );
  const found: string[] = [];
  for (let n = 0; n < 20; n++) {
    const { token, seen = 0n } = await feed.now(NEVER);
    found.push(await outcome(ask(feed, { token, seen: seen + 1n })));
    const since = ((await feed.now(NEVER)).seen ?? 0n) + 1n;
    const plan = { sort: '_id', direction: 1, since } as const;
    const reading = rows.read(plan, {}, { rows: 1, bytes: 1 }, NEVER).then((batch) => batch.release());
    found.push(await outcome(reading));
  }
  assert.deepEqual(
    [...new Set(found)].filter((one) => one !== 'read'),
    ['invalid-cursor'],
  );
});

/** Asks without an identity, again while the store is unavailable: it has not seen yet that the collection is another one. */
async function askAgain(feed: ChangeFeed, place: FeedPlace, waitMs: number) {
  const end = performance.now() + 20_000;
  for (;;)
    try {
      return await ask(feed, place, 10, waitMs);
    } catch (error) {
      if (performance.now() > end || (error as AppError).code !== 'store-unavailable') throw error;
    }
}

const ENDS: readonly (readonly [string, (opened: Opened) => Promise<unknown>])[] = [
  ['is dropped', ({ driver }) => driver.drop()],
  ['is renamed', ({ driver }) => driver.rename('elsewhere')],
  [
    'is replaced by another one',
    async ({ client }) => {
      await client.db().collection('other').insertOne({});
      await client.db().collection('other').rename('rows', { dropTarget: true });
    },
  ],
  [
    'is dropped and made anew',
    async ({ driver }) => {
      await driver.drop();
      await driver.insertOne({ _id: 'new' });
    },
  ],
  ['is dropped with its database', ({ client }) => client.db().dropDatabase()],
];

for (const [what, end] of ENDS)
  test(`a feed of a collection that ${what} says so, and never returns rows as removed`, async (t) => {
    const open = await opened(t);
    if (!open) return;
    const { feed, driver, rows } = open;
    await driver.insertOne({ _id: 1 });
    const { identity } = await rows.describe(NEVER);
    assert.ok(identity);
    const place = await feed.now(NEVER);
    const replaced = isProblem('collection-replaced');
    const read = (waitMs: number) => feed.read(place, { most: 10, waitMs }, identity, NEVER);
    const before = await feed.read(place, { most: 10, waitMs: 0 }, identity, NEVER);
    assert.deepEqual(before.keys, []);
    const waiting = read(60_000);
    await until('the stream is open', async () => (await openStreams(open.client)).length === 1);
    const ended = assert.rejects(waiting, replaced, 'the reader that waits');
    await end(open);
    await ended;
    await assert.rejects(read(0), replaced, 'a reader that comes later');
    await assert.rejects(read(1_000), replaced, 'a reader that comes later and waits');
    for (const waitMs of [0, 1_000])
      await assert.rejects(askAgain(feed, place, waitMs), replaced, 'a reader that knows no identity');
    const keys = [makeBookmark({ _id: new Int32(1) })];
    await assert.rejects(lookUp(feed, keys, { sort: '_id', direction: 1, identity }), replaced, 'a look-up');
  });

it('the changes after a snapshot begin behind it', async ({ feed, driver, rows }) => {
  await driver.insertMany([{ _id: 1 }, { _id: 2 }]);
  const { now: time = null } = await rows.describe(NEVER, { now: true });
  assert.ok(time !== null);
  assert.deepEqual((await keysSince(feed, feed.at(time))).keys, []);
  await driver.insertOne({ _id: 3 });
  assert.deepEqual(idsOf((await keysSince(feed, feed.at(time))).keys), [3]);
});
