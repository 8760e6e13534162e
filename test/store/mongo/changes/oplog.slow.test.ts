import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON, Int32 } from '../../../../src/store/values/bson.ts';
import type { FeedPlace } from '../../../../src/store/change-feed.ts';
import { BY_ID, feedOf, isProblem } from '../../../support/store/changes.ts';
import { Follower, nameOf } from '../../../support/store/following.ts';
import { openStore } from '../../../support/store/mongo/mongo.ts';
import { ownMongod } from '../../../support/store/mongo/mongod.ts';
import { below, randomFrom } from '../../../support/store/random-collection.ts';
import { NEVER } from '../../../support/store/reading.ts';

const ROWS = 2_000;
const NOTE_BYTES = 8_000_000;
/** How much is written beside the copy. Megabytes. The oplog keeps 64, and up to a few more until it is cut. */
const MOST_MB = process.env.LONG ? 2_048 : 640;

test('a copy that takes longer than the oplog lasts goes on when the place of its start is lost, and is right', async (t) => {
  const set = await ownMongod(t, { arguments: ['--syncdelay', '1'] });
  const member = set?.members[0];
  if (!set || !member) return;
  const { store } = await openStore(t, set.uri);
  const { items } = store;
  const random = randomFrom(Number(process.env.SEED ?? 1));
  const model = new Map<number, Uint8Array>();
  let written = 0;
  const write = async (ids: readonly number[]) => {
    const rows = [...new Set(ids)].map(
      (id) => [id, BSON.serialize({ _id: new Int32(id), category: 'a', price: 1, n: written++ })] as const,
    );
    await items.insert(
      rows.map(([, row]) => row),
      'replace',
    );
    for (const [id, row] of rows) model.set(id, row);
  };
  await write(Array.from({ length: ROWS }, (_, id) => id));
  const start = await feedOf(items).now(NEVER);
  const { identity } = await items.describe(NEVER);
  const read = (place: FeedPlace, waitMs = 0) =>
    feedOf(items).read(place, { most: 1, waitMs }, identity, NEVER);
  const expired = isProblem('changes-expired');
  await write([0, 1]);
  const { next } = await read(start);
  const isStartLost = () => read(next).then(() => false, expired);
  const follower = await Follower.begin(items, BY_ID, random);
  let megabytes = 0;
  let lostAt = 0;
  await member.admin(async (client) => {
    while (megabytes < MOST_MB && (lostAt === 0 || process.env.LONG)) {
      await client.db('admin').command({ appendOplogNote: 1, data: { filler: 'x'.repeat(NOTE_BYTES) } });
      megabytes += NOTE_BYTES / 1_000_000;
      await write(Array.from({ length: 20 }, () => below(random, ROWS)));
      await follower.advance(1);
      if (lostAt === 0 && (await isStartLost())) lostAt = megabytes;
    }
  });
  assert.ok(lostAt > 0, `the place of the start is lost after ${megabytes} MB`);
  for (const waitMs of [0, 60_000])
    for (const place of [start, next]) await assert.rejects(read(place, waitMs), expired);
  assert.ok(follower.isWalking, 'the copy was on its way');
  await write([0, ROWS - 1]);
  await follower.finish();
  assert.equal(follower.copy.size, ROWS);
  for (const row of model.values()) assert.ok(follower.copy.get(nameOf(row))?.equals(row));
  t.diagnostic(`the place of the start was lost after ${lostAt} MB of ${megabytes}`);
});
