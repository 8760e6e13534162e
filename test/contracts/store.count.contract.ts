import assert from 'node:assert/strict';
import { numberRange } from '../support/store/number-range.ts';
import type { CountMode, Plan } from '../../src/store/store.ts';
import { allPlans } from './store.chain.contract.ts';
import type { StoreTest } from '../support/store/open-store.ts';
import { expectedItems, inCategory, makeItems, insertItems } from '../support/store/items.ts';
import { NEVER } from '../support/store/reading.ts';

const MODES: readonly CountMode[] = ['estimated', 'exact'];

/** Counts equal the rows of a plan, or are marked as inexact. */
export function countContract(test: StoreTest): void {
  test('every plan is counted as it is read', async (opened) => {
    const { items } = opened.store;
    const all = makeItems(200);
    await insertItems(items, all);
    const empty: Plan[] = [
      { sort: '_id', direction: 1, ...inCategory('missing') },
      { sort: '_id', direction: 1, ...inCategory('$ne') },
      { sort: 'price', direction: -1, range: numberRange('2', '1') },
    ];
    for (const plan of [...allPlans(), ...empty]) {
      const expected = expectedItems(all, plan).length;
      for (const mode of MODES) {
        const { rows, is } = await items.count(plan, mode, NEVER);
        assert.equal(rows, expected, JSON.stringify(plan));
        if (mode === 'exact') assert.equal(is, 'exact', JSON.stringify(plan));
      }
    }
    assert.equal(opened.slots.taken, 0);
  });

  test('nothing is counted for a client that has left, nor in an empty store', async (opened) => {
    const plan: Plan = { sort: 'price', direction: 1, range: numberRange('0', undefined) };
    for (const mode of MODES) {
      assert.deepEqual(await opened.store.items.count(plan, mode, NEVER), { rows: 0, is: 'exact' });
      const gone = AbortSignal.abort(new Error('gone'));
      await assert.rejects(opened.store.items.count(plan, mode, gone), /gone/);
    }
  });
}
