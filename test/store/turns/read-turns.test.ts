import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Batch } from '../../../src/store/batch.ts';
import { ReadTurns } from '../../../src/store/turns/read-turns.ts';
import type { Size } from '../../../src/store/store.ts';
import { deferred } from '../../support/engine/raw.ts';
import { NEVER } from '../../support/store/reading.ts';

const MB = 1 << 20;
/** A batch of full size of a stream under way. */
const NEXT: Size = { rows: 16_384, bytes: MB, patient: true };
const FIRST: Size = { rows: 250, bytes: MB };

function batchOf(capacity: number): Batch {
  return { slot: { capacity }, rows: 1, release: () => undefined } as unknown as Batch;
}

/** Turns of which batches of this many bytes are held. */
function heldBy(...bytes: number[]) {
  const turns = new ReadTurns();
  const batches = bytes.map((each) => turns.hold(batchOf(each)));
  const began: string[] = [];
  const take = (name: string, size: Size, signal = NEVER) =>
    turns.take(size, signal, async () => {
      began.push(name);
      return Promise.resolve(turns.hold(batchOf(size === NEXT ? MB : 64 << 10)));
    });
  return { turns, batches, began, take };
}

test('streams wait for their turn in their order, and those that begin go before them', async () => {
  const { turns, batches, began, take } = heldBy(MB, 23 * MB);
  const first = batches[0] ?? assert.fail();
  assert.equal(first.isAwaited?.(), false);
  const waiting = ['one', 'two', 'three'].map((name) => take(name, NEXT));
  await take('small', FIRST);
  assert.deepEqual(began, ['small']);
  assert.equal(first.isAwaited(), true);
  first.release();
  await waiting[0];
  assert.deepEqual(began, ['small', 'one']);
  turns.hold(batchOf(8 * MB));
  const late = take('late', FIRST);
  batches[1]?.release();
  await Promise.all([...waiting, late]);
  assert.deepEqual(began, ['small', 'one', 'two', 'three', 'late']);
  assert.equal(turns.hold(batchOf(0)).isAwaited?.(), false);
});

test('no more than a full memory is asked for at once, and a failed read gives its turn back', async () => {
  const turns = new ReadTurns();
  const gate = deferred();
  let running = 0;
  let most = 0;
  const read = async () => {
    most = Math.max(most, ++running);
    await gate.promise;
    running--;
    throw new Error('store broke');
  };
  const reads = Array.from({ length: 100 }, () => turns.take(NEXT, NEVER, read));
  await new Promise(setImmediate);
  assert.equal(running, 24);
  assert.equal(turns.mayReadAhead(), false);
  gate.resolve();
  for (const { status } of await Promise.allSettled(reads)) assert.equal(status, 'rejected');
  assert.equal(most, 24);
  assert.equal(turns.mayReadAhead(), true);
});

test('a stream that ends while it waits leaves the line', async () => {
  const { batches, began, take } = heldBy(24 * MB);
  const leaving = new AbortController();
  const gone = take('gone', NEXT, leaving.signal);
  const stays = take('stays', NEXT);
  leaving.abort(new Error('client gone'));
  await assert.rejects(gone, /client gone/);
  await assert.rejects(take('late', NEXT, leaving.signal), /client gone/);
  batches[0]?.release();
  await stays;
  assert.deepEqual(began, ['stays']);
});
