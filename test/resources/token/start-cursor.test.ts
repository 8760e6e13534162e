import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changesFrom } from '../../../src/resources/token/feed-cursor.ts';
import { AppError, changesUnsupported, storeUnavailable } from '../../../src/base/errors.ts';
import { MAX_CURSOR_BYTES } from '../../../src/resources/token/cursor.ts';
import type { ChangeFeed } from '../../../src/store/change-feed.ts';
import type { Plan, Collection } from '../../../src/store/store.ts';
import { NEVER } from '../../support/store/reading.ts';

const ALL: Plan = { sort: '_id', direction: 1 };

/** Rows of a store with this feed. */
function rowsOf(feed: Partial<ChangeFeed> | undefined): Pick<Collection, 'changes' | 'describe'> {
  const unexpected = () => assert.fail('not asked for');
  const none = { now: unexpected, at: unexpected, reaches: unexpected, read: unexpected, lookUp: unexpected };
  const changes = feed && { ...none, ...feed };
  return {
    ...(changes && { changes }),
    describe: () => Promise.resolve({ identity: 'c'.repeat(32), indexes: [] }),
  };
}

test('a set gives no start of changes when no client could read them', async () => {
  const range = { from: null, to: null } as unknown as NonNullable<Plan['range']>;
  const forbidden = () => Promise.reject(new AppError('forbidden', 'A part without pre-images.'));
  const unsupported = () => Promise.reject(changesUnsupported('No replica set.'));
  const long = () => Promise.resolve({ token: new Uint8Array(MAX_CURSOR_BYTES) });
  for (const [why, feed, plan] of [
    ['the store has no change feed', undefined, ALL],
    ['the set has a range', {}, { ...ALL, range }],
    ['the collection keeps no changes', { now: unsupported }, ALL],
    ['the key may not know them', { now: forbidden }, ALL],
    ['the cursor would be too long', { now: long }, ALL],
  ] as const)
    assert.equal(await changesFrom({ name: 'items', rows: rowsOf(feed) }, plan, NEVER), null, why);
});

test('a store that does not answer is no set without changes', async () => {
  for (const error of [storeUnavailable('gone'), new Error('forbidden')])
    await assert.rejects(
      changesFrom({ name: 'items', rows: rowsOf({ now: () => Promise.reject(error) }) }, ALL, NEVER),
      (caught) => caught === error,
    );
});
