import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Batch, ReadBatch } from '../../src/store/batch.ts';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { chain } from '../../src/pipeline/chain.ts';
import type { From, OwnedCollection, Plan, Size } from '../../src/store/store.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { NEVER } from '../support/store/reading.ts';

const PLAN = { sort: '_id', direction: 1 } as const;

/** A store of `total` rows of 100 bytes that records the reads. */
function fakeStore(total: number) {
  const slots = new Slots();
  const asked: { plan: Plan; from: From; size: Size }[] = [];
  let position = 0;
  const read: OwnedCollection['read'] = (plan, from, size) => {
    asked.push({ plan, from, size });
    const rows = Math.min(size.rows, total - position);
    position += rows;
    const slot = slots.take(Math.max(1, rows * 100));
    const batch: ReadBatch = {
      slot,
      start: 0,
      length: rows * 100,
      rows,
      last: rows > 0 ? makeBookmark({ _id: position }) : null,
      more: position < total,
      asOf: BigInt(asked.length),
      release: () => slot.release(),
      confirm: () => Promise.resolve(),
    };
    return Promise.resolve(batch);
  };
  return { read, slots, asked };
}

/** The batches of a chain on a fake store, after a first one of 250 rows. */
async function* batchesOf(
  store: ReturnType<typeof fakeStore>,
  isOver?: () => boolean,
): AsyncGenerator<Batch, void, undefined> {
  const first = await store.read(PLAN, {}, { rows: 250, bytes: 1e6 }, NEVER);
  yield* chain(store, PLAN, first, Infinity, NEVER, isOver);
}

test('a chain goes from bookmark to bookmark, by batches that grow to the size that the bytes of a row allow', async () => {
  const store = fakeStore(30_000);
  for await (const batch of batchesOf(store)) batch.release();
  const sizes = store.asked.map(({ size }) => size.rows);
  assert.deepEqual(sizes.slice(0, 4), [250, 1_000, 4_000, Math.floor((768 * 1024) / 100)]);
  assert.deepEqual(
    store.asked.slice(1).map(({ from }) => from.after !== undefined),
    Array.from({ length: store.asked.length - 1 }, () => true),
  );
  const since = store.asked.map(({ plan }) => plan.since);
  assert.deepEqual(since.slice(0, 3), [undefined, 1n, 1n], 'no read has to be newer than the first');
});

for (const [what, isAhead] of [
  ['is requested before the caller is done with the current one', true],
  ['is not requested before its time when there are too many', false],
] as const)
  test(`the next batch ${what}`, async () => {
    const store = { ...fakeStore(1000), mayReadAhead: () => isAhead };
    const batches = batchesOf(store);
    const { value } = await batches.next();
    assert.equal(store.asked.length, isAhead ? 2 : 1);
    (value as Batch).release();
    const next = await batches.next();
    assert.equal(store.asked.length, 2);
    (next.value as Batch).release();
    await batches.return();
  });

test('a chain that is over yields what was being read, and reads no more', async () => {
  const store = fakeStore(30_000);
  let isOver = false;
  for await (const batch of batchesOf(store, () => isOver)) {
    isOver = true;
    assert.equal(batch.more, true);
    batch.release();
  }
  assert.deepEqual([store.asked.length, store.slots.taken], [2, 0]);
});

test('a caller that stops early releases the batch that was being read', async () => {
  const store = fakeStore(30_000);
  for await (const batch of batchesOf(store)) {
    batch.release();
    break;
  }
  await Promise.resolve();
  assert.equal(store.slots.taken, 0);
});

test('a batch that its store does not confirm is released, and the chain rejects with the reason', async () => {
  const store = fakeStore(1000);
  const first = await store.read(PLAN, {}, { rows: 250, bytes: 1e6 }, NEVER);
  const unfit = { ...first, confirm: () => Promise.reject(new RangeError('unfit')) };
  await assert.rejects(chain(store, PLAN, unfit, Infinity, NEVER).next(), RangeError);
  await new Promise(setImmediate); // the batch that was read ahead
  assert.equal(store.slots.taken, 0);
});
