import assert from 'node:assert/strict';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { BSON, Double, Int32, Long, ObjectId, UUID } from '../../src/store/bson.ts';
import type { Plan } from '../../src/store/store.ts';
import { expectedItems, makeItem, makeItems, insertItems } from '../support/store/items.ts';
import { NEVER, PLENTY, assertChain, assertRows, readRows, takeRows } from '../support/store/reading.ts';
import type { StoreTest } from '../support/store/open-store.ts';
import { readRow } from '../../src/store/row.ts';

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

  test('get returns the item with an id, or null', async (opened) => {
    const items = makeItems(40);
    await insertItems(opened.store.items, items);
    for (const item of items) {
      const batch = await readRow(opened.store.items, makeBookmark({ _id: item.id }), NEVER);
      assert.ok(batch);
      assert.equal(batch.more, false);
      assert.deepEqual(batch.last && { ...BSON.deserialize(batch.last) }, {
        ...BSON.deserialize(BSON.serialize({ _id: item.id })),
      });
      assertRows(takeRows(batch), [item]);
    }
    const missing = [
      '',
      'text',
      new Int32(77),
      new Double(0.5),
      Long.MIN_VALUE,
      new ObjectId(),
      new UUID(),
      null,
      true,
    ];
    for (const _id of missing)
      assert.equal(await readRow(opened.store.items, makeBookmark({ _id }), NEVER), null, String(_id));
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
