import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Batch } from '../../src/store/batch.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { withHeartbeats } from '../../src/pipeline/heartbeats.ts';
import { batchOf } from '../support/rows/transcode.ts';

const slots = new Slots();
const EMPTY = { ...batchOf(slots, new Uint8Array(0)), rows: 0 };
const NEVER_MS = 1e9;

/** Batches that come when the test says so. */
function batchesOf(t: { readonly closed: () => void }) {
  const waiting: ((result: IteratorResult<Batch>) => void)[] = [];
  const source: AsyncIterableIterator<Batch> = {
    [Symbol.asyncIterator]: () => source,
    next: () => new Promise((resolve) => waiting.push(resolve)),
    return: () => {
      t.closed();
      return Promise.resolve({ done: true, value: undefined });
    },
  };
  return { source, give: (result: IteratorResult<Batch>) => waiting.shift()?.(result) };
}

function released(): { readonly batch: Batch; readonly times: () => number } {
  let times = 0;
  const batch = { ...EMPTY, rows: 1, release: () => (times += 1) };
  return { batch, times: () => times };
}

test('while the next batch does not come, empty ones do; the batch comes then, and nothing behind the last', async () => {
  let isClosed = false;
  const { source, give } = batchesOf({ closed: () => (isClosed = true) });
  const beating = withHeartbeats(source, EMPTY, 1);
  for (let beat = 0; beat < 3; beat++) assert.equal((await beating.next()).value, EMPTY);
  const { batch, times } = released();
  const next = beating.next();
  give({ done: false, value: batch });
  assert.equal((await next).value, batch);
  const waiting = withHeartbeats(source, EMPTY, NEVER_MS);
  const last = waiting.next();
  give({ done: true, value: undefined });
  assert.deepEqual(await last, { done: true, value: undefined });
  assert.equal(times(), 0, 'who takes a batch releases it');
  assert.ok(isClosed);
});

test('a batch that comes when its reader has left is released once, and a later failure rejects nothing', async () => {
  let closed = 0;
  const { source, give } = batchesOf({ closed: () => closed++ });
  const leaving = withHeartbeats(source, EMPTY, 1);
  await leaving.next();
  await leaving.return(undefined);
  const { batch, times } = released();
  give({ done: false, value: batch });
  await new Promise(setImmediate);
  assert.deepEqual([times(), closed], [1, 1]);
  const failing = withHeartbeats(
    { [Symbol.asyncIterator]: () => ({ next: () => rejectedLater() }) },
    EMPTY,
    1,
  );
  await failing.next();
  await failing.return(undefined);
  fail(new Error('no reader waits for it'));
  await new Promise(setImmediate);
});

let fail: (reason: Error) => void = () => undefined;
function rejectedLater(): Promise<IteratorResult<Batch>> {
  return new Promise((_, reject) => (fail = reject));
}

test('a failure of the next batch reaches the reader', async () => {
  const failing = withHeartbeats(
    { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new RangeError('x')) }) },
    EMPTY,
    NEVER_MS,
  );
  await assert.rejects(failing.next(), RangeError);
});
