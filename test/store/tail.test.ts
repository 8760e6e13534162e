import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError, storeUnavailable } from '../../src/errors.ts';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { BSON } from '../../src/store/bson.ts';
import type { ChangeFeed, LookedUp } from '../../src/store/change-feed.ts';
import { ReadTurns } from '../../src/store/read-turns.ts';
import { Slots } from '../../src/store/slots.ts';
import { retryingFeed } from '../../src/store/tail.ts';
import { arrayBody, batchOf } from '../support/rows/transcode.ts';
import { NEVER, PLENTY, takeRows } from '../support/store/reading.ts';

test('a look-up that fails is tried again, and goes on behind the rows that it had', async () => {
  const slots = new Slots();
  const keys = ['a', 'b', 'c'].map((_id) => makeBookmark({ _id }));
  let outcomes: (Error | null)[] = [];
  const lookUp = ([key]: Parameters<ChangeFeed['lookUp']>[0]): Promise<LookedUp> => {
    const failure = outcomes.shift();
    if (failure) return Promise.reject(failure);
    return Promise.resolve({ taken: 1, batch: key ? batchOf(slots, arrayBody([key])) : null });
  };
  const never = () => assert.fail();
  const feed: ChangeFeed = { now: never, at: never, reaches: never, read: never, lookUp };
  const pause = () => Promise.resolve();
  const reader = retryingFeed(feed, new ReadTurns(), { retryMs: 60_000, pause });
  const idsRead = async () => {
    const ids: unknown[] = [];
    const size = { rows: 1_000, bytes: PLENTY };
    for await (const batch of reader.rows(keys, { sort: '_id', direction: 1 }, size, NEVER))
      ids.push(...takeRows(batch).map((row): unknown => BSON.deserialize(row)._id));
    return ids;
  };
  const away = storeUnavailable(new Error('away'));
  outcomes = [away, null, away, away];
  assert.deepEqual(await idsRead(), ['a', 'b', 'c']);
  const refused = new AppError('store-unfit', 'x');
  outcomes = [null, refused];
  await assert.rejects(idsRead(), refused);
  assert.equal(slots.taken, 0);
});
