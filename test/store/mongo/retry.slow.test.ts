import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Document } from 'mongodb';
import { AppError } from '../../../src/errors.ts';
import type { Slots } from '../../../src/store/slots.ts';
import type { Plan, Store } from '../../../src/store/store.ts';
import { expectedItems, makeItems, insertItems } from '../../support/store/items.ts';
import { WAYS, openStore } from '../../support/store/mongo/mongo.ts';
import { ownMongod } from '../../support/store/mongo/mongod.ts';
import { NEVER, PLENTY, assertChain } from '../../support/store/reading.ts';

const PLAN: Plan = { sort: '_id', direction: 1 };
const SIZE = { rows: 7, bytes: PLENTY };
const ITEMS = makeItems(20);

interface Failing {
  readonly store: Store;
  readonly slots: Slots;
  /** Makes the next commands of this name fail in this way. */
  readonly fail: (command: string, times: number, how: Document, skip?: number) => Promise<void>;
}

/** A store on a mongod that the test can make fail. */
async function failingStore(t: TestContext, lane = true): Promise<Failing | null> {
  const set = await ownMongod(t, { arguments: ['--setParameter', 'enableTestCommands=1'] });
  const member = set?.members[0];
  if (!set || !member) return null;
  // After such an answer the driver avoids a member until its monitor has seen it again. The monitor notices a
  // real change at once, but one that a fail point simulates only at its next check.
  const { store, slots } = await openStore(t, `${set.uri}&heartbeatFrequencyMS=500`, { lane });
  await insertItems(store.items, ITEMS);
  const fail = (command: string, times: number, how: Document, skip = 0) =>
    member.admin(async (client) => {
      const data = { failCommands: [command], ...how };
      await client
        .db('admin')
        .command({ configureFailPoint: 'failCommand', mode: skip > 0 ? { skip } : { times }, data });
    });
  return { store, slots, fail };
}

function readAll(store: Store): Promise<void> {
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
    const failing = await failingStore(t, lane);
    if (!failing) return;
    for (const [what, how] of PASSING)
      await t.test(what, async () => {
        await failing.fail('find', asked - 1, how);
        await readAll(failing.store);
        await failing.fail('find', asked, how);
        await assert.rejects(failing.store.items.read(PLAN, {}, SIZE, NEVER), isUnavailable);
        await readAll(failing.store);
        assert.equal(failing.slots.taken, 0);
      });
  });

  test(`a server asked ${name} that times out is unavailable, and a wrong command is an internal error`, async (t) => {
    const failing = await failingStore(t, lane);
    if (!failing) return;
    const { store, fail, slots } = failing;
    await fail('find', 1, { errorCode: 50 });
    await assert.rejects(store.items.read(PLAN, {}, SIZE, NEVER), isUnavailable);
    await fail('find', 1, { errorCode: 9 }); // FailedToParse
    await assert.rejects(store.items.read(PLAN, {}, SIZE, NEVER), { name: 'MongoServerError', code: 9 });
    await readAll(store);
    assert.equal(slots.taken, 0);
  });
}

test('a write that a majority did not confirm is not reported as written', async (t) => {
  const failing = await failingStore(t);
  if (!failing) return;
  const { store, fail } = failing;
  const rows = makeItems(22).map(({ bytes }) => bytes);
  for (const code of [64, 91, 100]) {
    // Twice, because the driver repeats a write whose confirmation failed temporarily.
    const writeConcernError = { code, errmsg: 'not confirmed' };
    await fail('insert', 2, { writeConcernError });
    await assert.rejects(store.items.insert(rows, 'skip'), isUnavailable, String(code));
    await fail('insert', 0, { writeConcernError });
  }
  await fail('insert', 1, { closeConnection: true });
  const { written, skipped, refused } = await store.items.insert(rows, 'skip');
  assert.deepEqual([written + skipped, refused], [rows.length, []]);
});

test('a file whose removal did not end is still listed, so that the next look removes it', async (t) => {
  const failing = await failingStore(t);
  if (!failing) return;
  const { files } = failing.store;
  const writer = await files.create('a.b');
  await writer.write(Buffer.alloc(600_000));
  await writer.finish();
  for (const skip of [0, 1]) {
    await failing.fail('delete', 1, { errorCode: 13 }, skip);
    await assert.rejects(files.remove('a.b'));
    assert.deepEqual(await files.names(), ['a.b'], `${skip} of two deletions made`);
  }
  await failing.fail('none', 1, { errorCode: 13 });
  await files.remove('a.b');
  assert.deepEqual(await files.names(), []);
});
