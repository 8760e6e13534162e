import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { AppError, storeUnavailable } from '../../src/errors.ts';
import { makeBookmark, type Bookmark } from '../../src/store/bookmark.ts';
import { BSON } from '../../src/store/bson.ts';
import type { Batch } from '../../src/store/batch.ts';
import type { ChangeFeed, FeedPlace, LookedUp } from '../../src/store/change-feed.ts';
import { LoopTurns } from '../../src/store/loop-turns.ts';
import { ReadTurns } from '../../src/store/read-turns.ts';
import { Slots } from '../../src/store/slots.ts';
import type { Plan } from '../../src/store/store.ts';
import { retryingFeed, type FeedReader } from '../../src/store/tail.ts';
import { deferred } from '../support/engine/raw.ts';
import { NEVER, PLENTY, takeRows } from '../support/store/reading.ts';
import { arrayBody, batchOf } from '../support/rows/transcode.ts';

const BY_ID: Plan = { sort: '_id', direction: 1 };
const SIZE = { rows: 1_000, bytes: PLENTY };
const KEYS = ['a', 'b', 'c'].map((_id) => makeBookmark({ _id }));

function placeAt(n: number): FeedPlace {
  return { token: Uint8Array.of(n) };
}

/** A feed whose look-ups the test counts, and lets go on. Each key has a row, and each look-up takes one key. */
class FakeFeed implements Pick<ChangeFeed, 'lookUp'> {
  readonly slots = new Slots();
  readonly lookUps: { readonly keys: readonly Bookmark[]; readonly signal: AbortSignal }[] = [];
  /** What each look-up waits for. */
  gate: () => Promise<void> = () => Promise.resolve();

  constructor(t: TestContext) {
    t.after(() => assert.equal(this.slots.taken, 0, 'every slot was released'));
  }

  async lookUp(keys: readonly Bookmark[], _: Plan, __: unknown, signal: AbortSignal): Promise<LookedUp> {
    this.lookUps.push({ keys, signal });
    const left = aborted(signal);
    left.catch(() => undefined); // heard only while a row is awaited
    await Promise.race([this.gate(), left]);
    const [key] = keys;
    return { taken: 1, batch: key ? batchOf(this.slots, arrayBody([key])) : null };
  }

  /** A reader of its own. */
  reader(retryMs = 1_000, pause?: () => Promise<void>): FeedReader {
    const feed: ChangeFeed = {
      now: () => assert.fail(),
      at: () => assert.fail(),
      reaches: () => assert.fail(),
      read: () => assert.fail(),
      lookUp: (...call) => this.lookUp(...call),
    };
    return retryingFeed(feed, new ReadTurns(), { retryMs, ...(pause && { pause }) });
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

/** The ids of all batches, each released at once. */
async function idsOf(batches: AsyncIterable<Batch>): Promise<unknown[]> {
  const ids: unknown[] = [];
  for await (const batch of batches) ids.push(...idsIn(batch));
  return ids;
}

function idsIn(batch: Batch): unknown[] {
  return takeRows(batch).map((row): unknown => BSON.deserialize(row)._id);
}

test('a hundred readers at one place share the look-ups of the same keys, and each gets all rows', async (t) => {
  const fake = new FakeFeed(t);
  const feed = fake.reader();
  const plan = { ...BY_ID, equals: [{ path: 'category', value: 'x' }] };
  const all = await Promise.all(
    Array.from({ length: 100 }, () => idsOf(feed.rows(KEYS, { ...plan }, placeAt(1), SIZE, NEVER))),
  );
  assert.equal(fake.lookUps.length, KEYS.length);
  for (const ids of all) assert.deepEqual(ids, ['a', 'b', 'c']);
});

test('a look-up is shared only at the same place, with the same keys, filter and collection', async (t) => {
  const fake = new FakeFeed(t);
  const feed = fake.reader();
  const calls: [readonly Bookmark[], Plan, FeedPlace][] = [
    [KEYS, BY_ID, placeAt(1)],
    [KEYS, BY_ID, placeAt(2)], // the rows may have changed between the two places
    [KEYS, BY_ID, { ...placeAt(1), seen: 7n }],
    [KEYS, { ...BY_ID, since: 7n }, placeAt(1)],
    [KEYS, { ...BY_ID, identity: 'i' }, placeAt(1)],
    [KEYS, { ...BY_ID, equals: [{ path: 'category', value: 'x' }] }, placeAt(1)],
    [KEYS, { ...BY_ID, equals: [{ path: 'category', value: 'y' }] }, placeAt(1)],
    [KEYS.slice(0, 2), BY_ID, placeAt(1)],
  ];
  await Promise.all(calls.map(([keys, plan, place]) => idsOf(feed.rows(keys, plan, place, SIZE, NEVER))));
  const asked = calls.reduce((sum, [keys]) => sum + keys.length, 0);
  assert.equal(fake.lookUps.length, asked);
  await idsOf(feed.rows(KEYS, BY_ID, placeAt(1), SIZE, NEVER));
  assert.equal(fake.lookUps.length, asked + KEYS.length, 'one that has ended is not shared');
});

test('readers that leave take nothing from the others, and the last one ends the look-up', async (t) => {
  const fake = new FakeFeed(t);
  const feed = fake.reader();
  const gate = deferred();
  fake.gate = () => gate.promise.then(() => undefined);
  const [first, second] = [new AbortController(), new AbortController()];
  const leaving = [first, second].map(({ signal }) =>
    assert.rejects(idsOf(feed.rows(KEYS, BY_ID, placeAt(1), SIZE, signal)), /left/),
  );
  const staying = idsOf(feed.rows(KEYS, BY_ID, placeAt(1), SIZE, NEVER));
  first.abort(new Error('left'));
  second.abort(new Error('left'));
  await Promise.all(leaving);
  assert.equal(fake.lookUps[0]?.signal.aborted, false);
  gate.resolve();
  assert.deepEqual(await staying, ['a', 'b', 'c']);
  assert.equal(fake.lookUps.length, KEYS.length);

  const stuck = deferred();
  fake.gate = () => stuck.promise.then(() => undefined);
  const last = new AbortController();
  const alone = assert.rejects(idsOf(feed.rows(KEYS, BY_ID, placeAt(2), SIZE, last.signal)), /left/);
  last.abort(new Error('left'));
  await alone;
  assert.equal(fake.lookUps.at(-1)?.signal.aborted, true);
});

test('a reader that stalls keeps one batch, and looks up by itself what the others have read meanwhile', async (t) => {
  const fake = new FakeFeed(t);
  const keys = Array.from({ length: 20 }, (_, n) => makeBookmark({ _id: n }));
  const reader = fake.reader();
  const ask = () => reader.rows(keys, BY_ID, placeAt(1), SIZE, NEVER);
  const slow = ask()[Symbol.asyncIterator]();
  const fast = idsOf(ask());
  const stalled = await slow.next();
  assert.equal((await fast).length, 20);
  assert.equal(fake.slots.taken, 1, 'the batch that the slow reader has');
  assert.ok(stalled.done !== true);
  const rest: unknown[] = idsIn(stalled.value);
  rest.push(...(await idsOf({ [Symbol.asyncIterator]: () => slow })));
  assert.deepEqual(
    rest,
    keys.map((_, n) => n),
  );
  const counts = new Map<number, number>();
  for (const { keys: asked } of fake.lookUps) counts.set(asked.length, (counts.get(asked.length) ?? 0) + 1);
  assert.equal(counts.get(20), 1, 'both had the first row of one look-up');
  assert.equal(counts.get(19), 2, 'the slow one looked the others up by itself');
});

test('a look-up that fails is tried again by all its readers together', async (t) => {
  const fake = new FakeFeed(t);
  let fails = 1;
  const later = () => new Promise<void>((resolve) => setImmediate(resolve));
  fake.gate = () => (fails-- > 0 ? Promise.reject(storeUnavailable(new Error('away'))) : later());
  const reader = fake.reader(60_000, later);
  const all = await Promise.all(
    Array.from({ length: 9 }, () => idsOf(reader.rows(KEYS, BY_ID, placeAt(1), SIZE, NEVER))),
  );
  for (const ids of all) assert.deepEqual(ids, ['a', 'b', 'c']);
  assert.equal(fake.lookUps.length, 1 + KEYS.length);
  const refused = new AppError('store-unfit', 'x');
  fake.gate = () => Promise.reject(refused);
  const both = [1, 2].map(() => idsOf(reader.rows(KEYS, BY_ID, placeAt(1), SIZE, NEVER)));
  await Promise.all(both.map((failing) => assert.rejects(failing, refused)));
});

test('readers that wait go on one after another, and those that are done wait for a common round', async () => {
  const turns = new LoopTurns();
  const steps: string[] = [];
  const act = async (name: string) => {
    await turns.next();
    steps.push(`${name} begins`);
    await Promise.resolve();
    steps.push(`${name} ends`);
    await turns.round();
    steps.push(`${name} again`);
  };
  await turns.round(); // no reader waits
  await Promise.all(['a', 'b', 'c'].map(act));
  assert.deepEqual(steps, [
    ...['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'],
    ...['a again', 'b again', 'c again'],
  ]);
});
