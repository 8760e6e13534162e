import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changesFrom } from '../../../src/resources/changes/start-cursor.ts';
import { AppError, changesUnsupported, storeUnavailable } from '../../../src/errors.ts';
import { MAX_CURSOR_BYTES } from '../../../src/resources/token/cursor.ts';
import type { ChangeFeed, FeedPlace } from '../../../src/store/change-feed.ts';
import type { Plan, Collection } from '../../../src/store/store.ts';
import { NEVER } from '../../support/store/reading.ts';
import { decodeFeedCursor } from '../../support/resources/tokens.ts';

const ALL: Plan = { sort: '_id', direction: 1 };
const NOW: FeedPlace = { token: Uint8Array.of(1, 2), seen: 7n };
const IDENTITY = 'c'.repeat(32);

/** Rows of a store with this feed. */
function rowsOf(
  feed: Partial<ChangeFeed> | undefined,
  identity: string | null = IDENTITY,
): Pick<Collection, 'changes' | 'describe'> {
  const unexpected = () => assert.fail('not asked for');
  const none = { now: unexpected, at: unexpected, reaches: unexpected, read: unexpected, lookUp: unexpected };
  const changes = feed && { ...none, ...feed };
  return {
    ...(changes && { changes }),
    describe: () => Promise.resolve({ identity: identity ?? undefined, indexes: [] }),
  };
}

const present = { now: () => Promise.resolve(NOW) };

test('the changes of a set follow from the present place, and its reads see everything that earlier reads returned', async () => {
  const start = await changesFrom(rowsOf(present), 'items')(ALL, NEVER);
  assert.ok(start);
  assert.deepEqual(start.bounds, { identity: IDENTITY, since: 7n });
  assert.deepEqual(decodeFeedCursor(start.cursor, 'items', ALL), {
    place: NOW,
    walk: 'over',
    identity: IDENTITY,
  });
});

test('the changes of a set as it was at a time follow from that time, and its reads need no other', async () => {
  const at = (time: bigint): FeedPlace => ({ token: Uint8Array.of(Number(time)), seen: time });
  const plan = { ...ALL, at: 5n, identity: 'd'.repeat(32) };
  const start = await changesFrom(rowsOf({ at }), 'items')(plan, NEVER);
  assert.ok(start);
  assert.deepEqual(start.bounds, { identity: plan.identity });
  const { place, identity } = decodeFeedCursor(start.cursor, 'items', plan);
  assert.deepEqual({ place, identity }, { place: at(5n), identity: plan.identity });
});

test('a store whose collections are never replaced and whose rows have one state bounds no reads', async () => {
  const now = () => Promise.resolve({ token: Uint8Array.of(1) });
  const start = await changesFrom(rowsOf({ now }, null), 'items')(ALL, NEVER);
  assert.ok(start);
  assert.deepEqual(start.bounds, {});
});

test('a set gives no start of changes when no client could read them', async () => {
  const range = { from: null, to: null } as unknown as NonNullable<Plan['range']>;
  const forbidden = () => Promise.reject(new AppError('forbidden', 'A part without pre-images.'));
  const unsupported = () => Promise.reject(changesUnsupported('No replica set.'));
  const long = () => Promise.resolve({ token: new Uint8Array(MAX_CURSOR_BYTES) });
  for (const [why, feed, plan] of [
    ['the store has no change feed', undefined, ALL],
    ['the set has a range', {}, { ...ALL, range }],
    ['the set has given ids', {}, { ...ALL, ids: [] }],
    ['the collection keeps no changes', { now: unsupported }, ALL],
    ['the key may not know them', { now: forbidden }, ALL],
    ['the cursor would be too long', { now: long }, ALL],
  ] as const)
    assert.equal(await changesFrom(rowsOf(feed), 'items')(plan as Plan, NEVER), null, why);
});

test('a store that does not answer is no set without changes', async () => {
  for (const error of [storeUnavailable('gone'), new Error('forbidden')])
    await assert.rejects(
      changesFrom(rowsOf({ now: () => Promise.reject(error) }), 'items')(ALL, NEVER),
      (caught) => caught === error,
    );
});
