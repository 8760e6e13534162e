import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '../../../src/base/errors.ts';
import type { Plan, Store } from '../../../src/store/store.ts';
import { expectedItems, makeItems, type Item, insertItems } from '../../support/store/items.ts';
import { WAYS, openStore } from '../../support/store/mongo/mongo.ts';
import { ownMongod, withDatabase } from '../../support/store/mongo/mongod.ts';
import { NEVER, PLENTY, assertChain, readRows } from '../../support/store/reading.ts';
import type { StoreWithItems } from '../../support/store/with-items.ts';

const BY_ID: Plan = { sort: '_id', direction: 1 };
const SIZE = { rows: 7, bytes: PLENTY };
/** The timeouts of production, shortened. */
const SHORT = 'serverSelectionTimeoutMS=1000&connectTimeoutMS=500&heartbeatFrequencyMS=500';

function isUnavailable(error: unknown): boolean {
  return (
    error instanceof AppError && error.code === 'store-unavailable' && error.headers['retry-after'] === '5'
  );
}

/** Resolves at the first answered ping. Each ping waits for a server by itself. */
async function untilReady(store: Store): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await store.ping();
      return;
    } catch (error) {
      if (!isUnavailable(error) || attempt === 60) throw error;
    }
  }
}

async function insert(store: StoreWithItems, items: readonly Item[]): Promise<void> {
  const result = await insertItems(store.items, items, 'skip');
  assert.deepEqual(result.refused, []);
}

for (const { name, lane } of WAYS)
  test(`a read on a server that hangs ends with its signal, or when the server counts as dead, ${name}`, async (t) => {
    const set = await ownMongod(t);
    const member = set?.members[0];
    if (!member) return;
    const { store, slots } = await openStore(t, `${set.uri}&${SHORT}`, { lane });
    const items = makeItems(20);
    await insert(store, items);
    member.pause();
    try {
      const reason = new Error('the client has left');
      const leaving = new AbortController();
      const reading = store.items.read(BY_ID, {}, SIZE, leaving.signal);
      setImmediate(() => leaving.abort(reason));
      await assert.rejects(reading, reason);
      await assert.rejects(store.items.read(BY_ID, {}, SIZE, NEVER), isUnavailable);
      await assert.rejects(insert(store, items), isUnavailable);
    } finally {
      member.resume();
    }
    await untilReady(store);
    await assertChain(store.items, BY_ID, {}, SIZE, expectedItems(items, BY_ID));
    assert.equal(slots.taken, 0);
    member.pause();
    await store.close();
  });

test('a write is read back at once, whichever member answers, over the lane and through the driver', async (t) => {
  const set = await ownMongod(t, { members: 3, electionMs: 2_000 });
  if (!set) return;
  for (const { name, lane } of WAYS) {
    const uri = withDatabase(`${set.uri}&readPreference=secondary`, lane ? 'lane' : 'driver');
    const { store } = await openStore(t, uri, { lane });
    const items = makeItems(60);
    for (const [n, item] of items.entries()) {
      await insert(store, [item]);
      const { rows } = await readRows(store.items, BY_ID, {}, { rows: 1000, bytes: PLENTY });
      assert.equal(rows.length, n + 1, `${item.id.toString()}, ${name}`);
    }
  }
});
