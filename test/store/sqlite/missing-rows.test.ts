/** A changed row that is not found is removed only if the log has its removal; else the file is damaged. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { BSON } from '../../../src/store/values/bson.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import type { Bookmark } from '../../../src/store/bookmark.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { BY_ID, feedOf, keysSince } from '../../support/store/changes.ts';
import { NEVER, PLENTY } from '../../support/store/reading.ts';
import { openFor, openRaw } from '../../support/store/sqlite/sqlite.ts';

const SIZE = { rows: 1_000, bytes: PLENTY };
const UNFIT = { code: 'store-unfit' };
const row = (_id: number, total: number) => BSON.serialize({ _id, total });
const keyOf = (_id: number) => makeBookmark({ _id });

async function opened(t: TestContext) {
  const directory = await temporaryFolder(t);
  const store = await openFor(t, directory);
  const rows = await store.open({ name: 'orders', collection: 'orders', indexes: [] });
  const feed = feedOf(rows);
  await rows.insert(
    [1, 2, 3].map((id) => row(id, 0)),
    'fail',
  );
  const place = await feed.now(NEVER);
  return {
    rows,
    changes: async () => (await keysSince(feed, place)).keys,
    /** How many rows the keys have. */
    found: async (keys: readonly Bookmark[]) => {
      const { batch } = await feed.lookUp(keys, BY_ID, SIZE, NEVER);
      batch?.release();
      return batch?.rows ?? 0;
    },
    /** Takes a row away without a change in the log, as a damaged index does. */
    lose: () => {
      const { connection, sets, close } = openRaw(directory);
      const { number } = sets.get('resource orders');
      assert.equal(connection.run(`delete from s${number} where n = (select max(n) from s${number})`), 1);
      close();
    },
  };
}

for (const [what, change] of Object.entries({
  'that is new': [row(2, 0)],
  'that was replaced': [row(2, 0), row(2, 1)],
}))
  test(`a row ${what} and is not found is damage, not removed`, async (t) => {
    const { rows, changes, found, lose } = await opened(t);
    await rows.remove([keyOf(2)]);
    for (const one of change) await rows.insert([one], 'replace');
    const keys = await changes();
    assert.equal(keys.length, 1);
    assert.equal(await found(keys), 1);
    lose();
    await assert.rejects(() => found(keys), UNFIT);
  });

test('a row that was removed, before its keys were read or behind that, is not found', async (t) => {
  const { rows, changes, found } = await opened(t);
  await rows.insert([row(1, 1), row(2, 1)], 'replace');
  await rows.remove([keyOf(2)]);
  const keys = await changes();
  assert.equal(await found(keys), 1);
  await rows.remove([keyOf(1)]);
  assert.equal(await found(keys), 0);
  await rows.insert([row(1, 2)], 'replace');
  assert.equal(await found(keys), 1);
});

test('a feed that waited is not up to date with a part of a transaction', async (t) => {
  const directory = await temporaryFolder(t);
  const store = await openFor(t, directory);
  const rows = await store.open({ name: 'orders', collection: 'orders', indexes: [] });
  const feed = feedOf(rows);
  let place = await feed.now(NEVER);
  const waiting = feed.read(place, { most: 1, waitMs: 60_000 }, undefined, NEVER);
  await rows.insert(
    [1, 2, 3].map((id) => row(id, 0)),
    'fail',
  );
  const seen: [keys: number, isUpToDate: boolean][] = [];
  for (let read = await waiting; ; read = await feed.read(place, { most: 1, waitMs: 0 }, undefined, NEVER)) {
    seen.push([read.keys.length, read.isUpToDate]);
    place = read.next;
    if (read.isUpToDate) break;
  }
  assert.deepEqual(seen, [
    [1, false],
    [1, false],
    [1, true],
  ]);
});
