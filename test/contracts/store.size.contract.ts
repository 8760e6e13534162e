import assert from 'node:assert/strict';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { Double, Int32 } from '../../src/store/values/bson.ts';
import type { Plan } from '../../src/store/store.ts';
import { expectedItems, makeItem, makeItems, insertItems } from '../support/store/items.ts';
import { PLENTY, assertChain, readRows } from '../support/store/reading.ts';
import type { StoreTest } from '../support/store/open-store.ts';
import { readRow } from '../../src/store/turns/read-row.ts';

const BY_ID: Plan = { sort: '_id', direction: 1 };

/** Batch sizes, single rows and aborted reads. */
export function sizeContract(test: StoreTest): void {
  test('a batch ends at its byte limit, has at least one row, and reports that there are more', async (opened) => {
    const items = Array.from({ length: 60 }, (_, n) =>
      makeItem(new Int32(n), 'b', new Double(n % 5), 'x'.repeat(n % 7 === 0 ? 40_000 : 300)),
    );
    await insertItems(opened.store.items, items);
    for (const bytes of [1, 1000, 50_000, 200_000])
      for (const sort of ['_id', 'price'])
        for (const direction of [1, -1] as const) {
          const plan: Plan = { sort, direction };
          await assertChain(opened.store.items, plan, {}, { rows: 1000, bytes }, expectedItems(items, plan));
        }
    assert.equal(opened.slots.taken, 0);
  });

  test("a read with an aborted signal rejects with the signal's reason and keeps nothing", async (opened) => {
    const items = makeItems(20);
    await insertItems(opened.store.items, items);
    const reason = new Error('the client has left');
    const size = { rows: 5, bytes: PLENTY };
    await assert.rejects(opened.store.items.read(BY_ID, {}, size, AbortSignal.abort(reason)), reason);
    await assert.rejects(
      readRow(opened.store.items, makeBookmark({ _id: new Int32(1) }), AbortSignal.abort(reason)),
      reason,
    );
    const leaving = new AbortController();
    const reading = opened.store.items.read(BY_ID, {}, size, leaving.signal);
    leaving.abort(reason);
    await assert.rejects(reading, reason);
    assert.equal(opened.slots.taken, 0);
    assert.equal((await readRows(opened.store.items, BY_ID, {}, size)).rows.length, 5);
  });
}
