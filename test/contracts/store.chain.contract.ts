import assert from 'node:assert/strict';
import { numberRange } from '../support/store/number-range.ts';
import type { Plan } from '../../src/store/store.ts';
import { CATEGORIES, expectedItems, inCategory, makeItems, insertItems } from '../support/store/items.ts';
import { PLENTY, assertChain, readRows } from '../support/store/reading.ts';
import type { StoreTest } from '../support/store/open-store.ts';

/** Two of each price. */
const ROWS = 34;
const BATCH_ROWS = [1, 7, ROWS, 1000];
/** For plans of further categories, which differ from those of the first one in nothing but their rows. */
const FEWER_BATCH_ROWS = [7, 1000];
const RANGES: readonly Pick<Plan, 'range'>[] = [
  {},
  { range: numberRange('0', undefined) },
  { range: numberRange(undefined, '2.5') },
  { range: numberRange('-1', '3') },
  { range: numberRange('0', '0') },
  { range: numberRange('3', '2') },
  { range: numberRange('4611686018427387904', undefined) },
  { range: numberRange(undefined, '-1152921504606846976') },
];

/** Each order, direction, price range and category, including a missing one and the empty one. */
export function* allPlans(): Generator<Plan, void, undefined> {
  for (const direction of [1, -1] as const)
    for (const category of [undefined, ...CATEGORIES, 'boo', '']) {
      const filter = category === undefined ? {} : inCategory(category);
      yield { sort: '_id', direction, ...filter };
      for (const range of RANGES) yield { sort: 'price', direction, ...filter, ...range };
    }
}

/** Reads plans from one end to the other. */
export function chainContract(test: StoreTest): void {
  test('every plan yields every row once, in order, with batches of any size', async ({
    store,
    slots,
  }, t) => {
    const items = makeItems(ROWS);
    await insertItems(store.items, items);
    for (const plan of allPlans())
      await t.test(JSON.stringify(plan), async () => {
        const expected = expectedItems(items, plan);
        const category = plan.equals?.[0]?.value ?? CATEGORIES[0];
        for (const rows of category === CATEGORIES[0] ? BATCH_ROWS : FEWER_BATCH_ROWS)
          await assertChain(store.items, plan, {}, { rows, bytes: PLENTY }, expected);
      });
    assert.equal(slots.taken, 0);
  });

  test('an empty store has no rows and reports no more', async (opened) => {
    for (const plan of allPlans()) {
      const { rows, last, more } = await readRows(opened.store.items, plan, {}, { rows: 10, bytes: PLENTY });
      assert.deepEqual([rows, last, more], [[], null, false]);
    }
    assert.equal(opened.slots.taken, 0);
  });
}
