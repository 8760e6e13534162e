import assert from 'node:assert/strict';
import { test } from 'node:test';
import { follow } from '../../../src/resources/changes/follow.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import type { ChangedKeys } from '../../../src/store/change-feed.ts';
import { BY_ID } from '../../support/store/changes.ts';
import { NEVER } from '../../support/store/reading.ts';

const placeAt = (n: number) => ({ token: Uint8Array.of(n) });
const changed = (n: number, ...ids: readonly number[]): ChangedKeys => ({
  keys: ids.map((_id) => makeBookmark({ _id })),
  next: placeAt(n),
  isUpToDate: true,
});

test('a reader is up to date when nothing has changed since its rows were looked up', async () => {
  // A transaction that comes between a read of keys and the look-up of their rows is seen in a part.
  const reads = [changed(1, 1), changed(2, 2), changed(2, 2), changed(2)];
  const log = {
    read: () => Promise.resolve(reads.shift() ?? changed(2)),
    reaches: () => true,
    rows: async function* () {
      // No row is there: all are removed.
    },
  };
  const none = () => Promise.reject(new Error('no row is read'));
  const want = {
    plan: BY_ID,
    most: () => 10,
    waitMs: () => 0,
    onKeys: () => undefined,
    now: () => 0,
    reads: NEVER,
    waits: NEVER,
  };
  const seen: (number | boolean)[] = [];
  const start = { place: placeAt(0), walk: 'over' } as const;
  for await (const { removed, isUpToDate } of follow(log, { read: none }, start, want)) {
    seen.push(removed?.length ?? isUpToDate);
    if (isUpToDate) break;
  }
  assert.deepEqual(seen, [false, 1, false, 1, true]);
});
