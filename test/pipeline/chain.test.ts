import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Batch, ReadBatch } from '../../src/store/batch.ts';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { chain } from '../../src/pipeline/chain.ts';
import type { From, OwnedCollection, Plan, Size } from '../../src/store/store.ts';
import { Slots } from '../../src/store/slots.ts';

const PLAN = { sort: '_id', direction: 1 } as const;

/** A store of `total` rows of 100 bytes that records the reads. */
function fakeStore(total: number) {
  const slots = new Slots();
  const asked: { plan: Plan; from: From; size: Size }[] = [];
  const state = { position: 0, failAt: Infinity };
  const read: OwnedCollection['read'] = (plan, from, size, signal) => {
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    asked.push({ plan, from, size });
    if (asked.length > state.failAt) return Promise.reject(new Error('store broke'));
    const rows = Math.min(size.rows, total - state.position);
    state.position += rows;
    const slot = slots.take(Math.max(1, rows * 100));
    const batch: ReadBatch = {
      slot,
      start: 0,
      length: rows * 100,
      rows,
      last: rows > 0 ? makeBookmark({ _id: state.position }) : null,
      more: state.position < total,
      asOf: BigInt(asked.length),
      release: () => slot.release(),
      confirm: () => Promise.resolve(),
    };
    return Promise.resolve(batch);
  };
  return { read, slots, asked, state };
}

async function first(store: ReturnType<typeof fakeStore>, rows: number): Promise<ReadBatch> {
  return store.read(PLAN, {}, { rows, bytes: 1e6 }, new AbortController().signal);
}

/** The batches of a chain on a fake store, after a first one of 250 rows. */
async function* batchesOf(
  store: ReturnType<typeof fakeStore>,
  limit = Infinity,
  signal = new AbortController().signal,
): AsyncGenerator<Batch, void, undefined> {
  yield* chain(store, PLAN, await first(store, 250), limit, signal);
}

test('a chain yields every row once, from bookmark to bookmark, and releases all slots', async () => {
  const store = fakeStore(30_000);
  let rows = 0;
  for await (const batch of batchesOf(store)) {
    rows += batch.rows;
    batch.release();
  }
  assert.equal(rows, 30_000);
  assert.equal(store.slots.taken, 0);
  assert.deepEqual(
    store.asked.slice(1).map(({ from }) => from.after !== undefined),
    Array.from({ length: store.asked.length - 1 }, () => true),
  );
  const since = store.asked.map(({ plan }) => plan.since);
  assert.deepEqual(since.slice(0, 3), [undefined, 1n, 1n], 'no read has to be newer than the first');
});

test('batches grow to the size that the bytes of a row allow', async () => {
  const store = fakeStore(30_000);
  for await (const batch of batchesOf(store)) batch.release();
  const sizes = store.asked.map(({ size }) => size.rows);
  assert.deepEqual(sizes.slice(0, 4), [250, 1_000, 4_000, Math.floor((768 * 1024) / 100)]);
});

test('the next batch is requested before the caller is done with the current one', async () => {
  const store = fakeStore(1000);
  const batches = batchesOf(store);
  const { value } = await batches.next();
  assert.equal(store.asked.length, 2);
  (value as Batch).release();
  await batches.return();
});

test('no batch is requested before its time when there are too many', async () => {
  const store = { ...fakeStore(1000), mayReadAhead: () => false };
  const batches = batchesOf(store);
  const { value } = await batches.next();
  assert.equal(store.asked.length, 1);
  (value as Batch).release();
  const next = await batches.next();
  assert.equal(store.asked.length, 2);
  (next.value as Batch).release();
  await batches.return();
});

test('a limit holds to the exact row', async () => {
  const store = fakeStore(30_000);
  let rows = 0;
  for await (const batch of batchesOf(store, 1234)) {
    rows += batch.rows;
    batch.release();
  }
  assert.equal(rows, 1234);
  assert.equal(store.asked.length, 2);
});

test('a chain that is over yields what was being read, and reads no more', async () => {
  const store = fakeStore(30_000);
  let isOver = false;
  const { signal } = new AbortController();
  for await (const batch of chain(store, PLAN, await first(store, 250), Infinity, signal, () => isOver)) {
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

test('a failed read rejects after the rows before it were delivered', async () => {
  const store = fakeStore(30_000);
  store.state.failAt = 2;
  let rows = 0;
  await assert.rejects(async () => {
    for await (const batch of batchesOf(store)) {
      rows += batch.rows;
      batch.release();
    }
  }, /store broke/);
  assert.equal(rows, 1_250);
  assert.equal(store.slots.taken, 0);
});

test('an aborted signal ends the chain with its reason', async () => {
  const store = fakeStore(30_000);
  const abort = new AbortController();
  await assert.rejects(async () => {
    for await (const batch of batchesOf(store, Infinity, abort.signal)) {
      batch.release();
      abort.abort(new Error('client gone'));
    }
  }, /client gone/);
  assert.equal(store.slots.taken, 0);
});
