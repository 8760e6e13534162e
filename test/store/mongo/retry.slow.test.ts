import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Document } from 'mongodb';
import { AppError } from '../../../src/base/errors.ts';
import type { Plan } from '../../../src/store/store.ts';
import { expectedItems, makeItems, insertItems } from '../../support/store/items.ts';
import { WAYS, failingStore } from '../../support/store/mongo/mongo.ts';
import { NEVER, PLENTY, assertChain } from '../../support/store/reading.ts';
import type { StoreWithItems } from '../../support/store/with-items.ts';

const PLAN: Plan = { sort: '_id', direction: 1 };
const SIZE = { rows: 7, bytes: PLENTY };
const ITEMS = makeItems(20);

/** A store with items on a mongod that the test can make fail. */
async function failing(t: TestContext, lane = true) {
  const opened = await failingStore(t, { lane });
  if (opened) await insertItems(opened.store.items, ITEMS);
  return opened;
}

function readAll(store: StoreWithItems): Promise<void> {
  return assertChain(store.items, PLAN, {}, SIZE, expectedItems(ITEMS, PLAN));
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'store-unavailable';
}

const PASSING: readonly (readonly [string, Document])[] = [
  ['the connection breaks', { closeConnection: true }],
  ...[6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11601, 11602, 13435, 13436].map(
    (errorCode) => [`the server answers ${errorCode}`, { errorCode }] as const,
  ),
];

for (const { name, lane } of WAYS) {
  // The lane asks once, then the driver, which retries once.
  const asked = lane ? 3 : 2;

  test(`a read ${name} that fails temporarily is retried at once`, async (t) => {
    const opened = await failing(t, lane);
    if (!opened) return;
    const { store, fail, slots } = opened;
    for (const [what, how] of PASSING)
      await t.test(what, async () => {
        await fail(['find'], { times: asked - 1 }, how);
        await readAll(store);
        await fail(['find'], { times: asked }, how);
        await assert.rejects(store.items.read(PLAN, {}, SIZE, NEVER), isUnavailable);
        await readAll(store);
        assert.equal(slots.taken, 0);
      });
  });

  test(`a server asked ${name} that times out is unavailable, and a wrong command is an internal error`, async (t) => {
    const opened = await failing(t, lane);
    if (!opened) return;
    const { store, fail, slots } = opened;
    await fail(['find'], { times: 1 }, { errorCode: 50 });
    await assert.rejects(store.items.read(PLAN, {}, SIZE, NEVER), isUnavailable);
    await fail(['find'], { times: 1 }, { errorCode: 9 }); // FailedToParse
    await assert.rejects(store.items.read(PLAN, {}, SIZE, NEVER), { name: 'MongoServerError', code: 9 });
    await readAll(store);
    assert.equal(slots.taken, 0);
  });
}

test('a write that a majority did not confirm is not reported as written', async (t) => {
  const opened = await failing(t);
  if (!opened) return;
  const { store, fail } = opened;
  const rows = makeItems(22).map(({ bytes }) => bytes);
  for (const code of [64, 91, 100]) {
    // Twice, because the driver repeats a write whose confirmation failed temporarily.
    const writeConcernError = { code, errmsg: 'not confirmed' };
    await fail(['insert'], { times: 2 }, { writeConcernError });
    await assert.rejects(store.items.insert(rows, 'skip'), isUnavailable, String(code));
    await fail(['insert'], 'off', { writeConcernError });
  }
  await fail(['insert'], { times: 1 }, { closeConnection: true });
  const { written, skipped, refused } = await store.items.insert(rows, 'skip');
  assert.deepEqual([written + skipped, refused], [rows.length, []]);
});

test('a file whose removal did not end is still listed, so that the next look removes it', async (t) => {
  const opened = await failing(t);
  if (!opened) return;
  const { fail, store } = opened;
  const { files } = store;
  const writer = await files.create('a.b');
  await writer.write(Buffer.alloc(600_000));
  await writer.finish();
  for (const skip of [0, 1]) {
    await fail(['delete'], skip > 0 ? { skip } : { times: 1 }, { errorCode: 13 });
    await assert.rejects(files.remove('a.b'));
    assert.deepEqual(await files.names(), ['a.b'], `${skip} of two deletions made`);
  }
  await fail([], 'off');
  await files.remove('a.b');
  assert.deepEqual(await files.names(), []);
});
