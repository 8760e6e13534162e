import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MongoClient, type Collection } from 'mongodb';
import { BSON, Int32 } from '../../../../src/store/values/bson.ts';
import { makeBookmark } from '../../../../src/store/bookmark.ts';
import type { ChangeFeed, FeedPlace } from '../../../../src/store/change-feed.ts';
import { ReadTurns } from '../../../../src/store/turns/read-turns.ts';
import { retryingFeed } from '../../../../src/store/turns/readers.ts';
import { feedOf, isProblem, keysSince, lookUp, openStreams, until } from '../../../support/store/changes.ts';
import { ownMongod } from '../../../support/store/mongo/mongod.ts';
import { failingStore, openStore } from '../../../support/store/mongo/mongo.ts';
import { NEVER } from '../../../support/store/reading.ts';
import type { Member } from '../../../support/store/mongo/replica-set.ts';

const idsOf = (keys: readonly Uint8Array[]) => keys.map((key) => BSON.deserialize(key)._id as number);
const row = (_id: number) => BSON.serialize({ _id, category: 'a', price: 1 });

const ask = (feed: Pick<ChangeFeed, 'read'>, place: FeedPlace, most = 1_000, waitMs = 0) =>
  feed.read(place, { most, waitMs }, undefined, NEVER);

test('a feed returns all changes although commands of streams fail for a while', async (t) => {
  const opened = await failingStore(t);
  if (!opened) return;
  const { store, client, fail } = opened;
  const feed = feedOf(store.items);
  const reader = retryingFeed(feed, new ReadTurns(), { retryMs: 30_000 });
  let place = await feed.now(NEVER);
  let id = 0;
  for (const [what, data] of [
    ...[43, 50, 72, 91, 136, 189, 234, 237, 11600, 11602, 13435].map(
      (errorCode) => [`code ${errorCode}`, { errorCode }] as const,
    ),
    ['a connection that breaks', { closeConnection: true }] as const,
  ])
    await t.test(what, async () => {
      await store.items.insert([row(++id)], 'fail');
      for (const command of ['aggregate', 'getMore']) {
        await fail([command], { times: 1 }, data);
        // The history is asked for by a cursor of its own, again after such a failure.
        const read = await ask(reader, place, 10, 0);
        assert.deepEqual(idsOf(read.keys), [id], command);
      }
      ({ place } = await keysSince(feed, place));
      const waiting = ask(reader, place, 10, 60_000);
      await until('the stream is open', async () => (await openStreams(client)).length === 1);
      await fail(['getMore', 'aggregate'], { times: 3 }, data);
      await store.items.insert([row(++id)], 'fail');
      const { keys, next } = await waiting;
      assert.deepEqual(idsOf(keys), [id], 'the reader that waits');
      place = next;
      await fail(['getMore', 'aggregate'], 'off');
    });
  await t.test('a store that does not answer', async () => {
    await fail(['find', 'aggregate'], 'alwaysOn', { errorCode: 11602 });
    await assert.rejects(ask(feed, place, 10, 0), isProblem('store-unavailable'));
    await fail(['find', 'aggregate'], 'off');
  });
  await t.test('history that is lost under readers', async () => {
    const waiting = ask(feed, place, 10, 60_000);
    const expired = assert.rejects(waiting, isProblem('changes-expired'));
    await until('the stream is open', async () => (await openStreams(client)).length === 1);
    // The shared stream, and then the reader's own cursor.
    await fail(['getMore', 'aggregate'], 'alwaysOn', { errorCode: 286 });
    await expired;
    await fail(['getMore', 'aggregate'], 'off');
    const later = await feed.now(NEVER);
    await store.items.insert([row(++id)], 'fail');
    assert.deepEqual(idsOf((await ask(feed, later, 10, 60_000)).keys), [id]);
  });
});

test('nothing is lost when the primary steps down, hangs or is killed under readers', async (t) => {
  const set = await ownMongod(t, { members: 3, electionMs: 2_000, cacheGB: 0.25 });
  if (!set) return;
  const { store } = await openStore(t, set.uri);
  const feed = feedOf(store.items);
  const place = await feed.now(NEVER);
  const soon = { connectTimeoutMS: 1_000, heartbeatFrequencyMS: 500, socketTimeoutMS: 3_000 };
  const writer = new MongoClient(set.uri, soon);
  t.after(() => writer.close());
  const rows = writer.db('sluice').collection('items');
  const total = 150;
  const readers = [0, 1, 50].map((waitMs, n) =>
    follow(feed, place, waitMs * 20, [1, 7, 1_000][n] ?? 1, total),
  );
  const strikes: Readonly<Record<number, (primary: Member) => unknown>> = {
    30: (primary) =>
      primary.admin((client) => client.db('admin').command({ replSetStepDown: 3, force: true })),
    70: (primary) => primary.pause(),
    130: (primary) => primary.kill(),
  };
  let struck: Member | null = null;
  for (let id = 1; id <= total; id++) {
    const strike = strikes[id];
    if (strike) await strike((struck = await set.primary()));
    if (id === 100) struck?.resume();
    await write(rows, id);
  }
  const expected = Array.from({ length: total }, (_, n) => n + 1);
  for (const reader of readers)
    assert.deepEqual(
      [...(await reader)].sort((a, b) => a - b),
      expected,
    );
  const keys = expected.map((n) => makeBookmark({ _id: new Int32(n) }));
  assert.equal((await lookUp(feed, keys)).length, total);
});

/** Writes a row for a majority, again while the set has no primary. */
async function write(rows: Collection, id: number): Promise<void> {
  const row = { _id: new Int32(id) as never, category: 'a', price: 1 };
  for (let attempt = 1; ; attempt++) {
    try {
      // A write whose reply was lost may be rolled back, so it is made again until it is acknowledged.
      await rows.replaceOne({ _id: row._id }, row, { upsert: true, writeConcern: { w: 'majority' } });
      return;
    } catch (error) {
      if (attempt === 20) throw error;
    }
  }
}

/** Reads until the feed has returned `total` rows, again from the last place after each failure that passes. */
async function follow(
  feed: ChangeFeed,
  from: FeedPlace,
  waitMs: number,
  most: number,
  total: number,
): Promise<Set<number>> {
  const ids = new Set<number>();
  for (let place = from; ids.size < total;) {
    try {
      const { keys, next } = await feed.read(place, { most, waitMs }, undefined, NEVER);
      for (const id of idsOf(keys)) ids.add(id);
      place = next;
    } catch (error) {
      isProblem('store-unavailable')(error);
    }
  }
  return ids;
}
