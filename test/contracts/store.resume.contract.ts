import assert from 'node:assert/strict';
import { numberRange } from '../support/store/number-range.ts';
import { bookmarkOf } from '../../src/store/bookmark.ts';
import { Double, Int32, Long } from '../../src/store/values/bson.ts';
import type { OwnedCollection, Plan } from '../../src/store/store.ts';
import {
  compareItems,
  expectedItems,
  inCategory,
  makeItem,
  makeItems,
  insertItems,
} from '../support/store/items.ts';
import type { Item, Price } from '../support/store/items.ts';
import { PLENTY, assertChain, readRows } from '../support/store/reading.ts';
import type { StoreTest } from '../support/store/open-store.ts';

const SIZE = { rows: 7, bytes: PLENTY };
const PLANS: readonly Plan[] = [
  { sort: '_id', direction: 1 },
  { sort: '_id', direction: -1, ...inCategory('books') },
  { sort: 'price', direction: 1 },
  { sort: 'price', direction: -1, range: numberRange('-1', undefined) },
  { sort: 'price', direction: 1, ...inCategory('b'), range: numberRange(undefined, '4') },
  { sort: 'price', direction: -1, ...inCategory('größe') },
];

/** Reading on after a row that may have changed since. */
export function resumeContract(test: StoreTest): void {
  test('any row is a bookmark, also after it was deleted or its price changed', async (opened) => {
    const { store, slots } = opened;
    const items = makeItems(32);
    await insert(store.items, items);
    const gone = items.filter((_, n) => n % 4 === 1);
    const changed = items.filter((_, n) => n % 4 === 2);
    for (const { id } of gone) await opened.remove(id);
    const moved = changed.map(({ id, category }) => makeItem(id, category, new Double(2.75)));
    await insertItems(store.items, moved, 'replace');
    const now = items
      .map((item) => moved.find(({ id }) => id === item.id) ?? item)
      .filter((item) => !gone.includes(item));
    for (const plan of PLANS)
      for (const item of items) {
        const rest = expectedItems(now, plan).filter((other) => isBehind(other, item, plan));
        await assertChain(store.items, plan, { after: bookmarkOf(item.bytes, plan) }, SIZE, rest);
      }
    assert.equal(slots.taken, 0);
  });

  test('rows inserted after the bookmark while a chain is read are in it, those before it are not', async (opened) => {
    const { items } = opened.store;
    for (const direction of [1, -1] as const) {
      const category = `way ${direction}`;
      const plan: Plan = { sort: 'price', direction, ...inCategory(category) };
      const at = (n: number, price: number): Item =>
        makeItem(`${direction}/${n}`, category, new Double(price));
      await insert(items, [at(0, 10), at(1, 20), at(2, 20), at(3, 30)]);
      const first = await readRows(items, plan, {}, { rows: 2, bytes: PLENTY });
      assert.ok(first.last);
      const late = [at(4, 5), at(5, 20), at(6, 35), at(7, 20.5), at(8, 19.5)];
      await insert(items, late);
      const bookmarked = direction === 1 ? at(1, 20) : at(2, 20);
      const all = [at(0, 10), at(1, 20), at(2, 20), at(3, 30), ...late];
      const rest = expectedItems(all, plan).filter((other) => isBehind(other, bookmarked, plan));
      await assertChain(items, plan, { after: first.last }, { rows: 2, bytes: PLENTY }, rest);
    }
  });

  test('a bookmark matches by value, whatever its number type', async (opened) => {
    const same: Price[] = [new Int32(5), new Double(5), Long.fromNumber(5)];
    const items = same.map((price, n) => makeItem(new Int32(n), 'b', price));
    await insert(opened.store.items, items);
    for (const price of same) {
      const plan: Plan = { sort: 'price', direction: 1 };
      const after = bookmarkOf(makeItem(new Double(1), 'b', price).bytes, plan);
      await assertChain(opened.store.items, plan, { after }, SIZE, items.slice(2));
    }
  });

  test("a bookmark outside the plan's range reads from the nearer bound, or nothing", async (opened) => {
    const items = makeItems(40);
    await insert(opened.store.items, items);
    for (const direction of [1, -1] as const) {
      const plan: Plan = { sort: 'price', direction, range: numberRange('0', '2') };
      for (const price of [-50, 50]) {
        const mark = makeItem('zz', 'b', new Double(price));
        const rest = expectedItems(items, plan).filter((other) => isBehind(other, mark, plan));
        await assertChain(opened.store.items, plan, { after: bookmarkOf(mark.bytes, plan) }, SIZE, rest);
      }
    }
  });

  test('a read starts after a row or after a number of rows, not both', async (opened) => {
    const from = { after: bookmarkOf(makeItem('a', 'b', new Int32(1)).bytes, { sort: '_id' }), skip: 1 };
    await assert.rejects(readRows(opened.store.items, { sort: '_id', direction: 1 }, from, SIZE), TypeError);
  });
}

function isBehind(item: Item, bookmarked: Item, plan: Plan): boolean {
  return compareItems(item, bookmarked, plan) * plan.direction > 0;
}

async function insert(store: OwnedCollection, items: readonly Item[]): Promise<void> {
  const result = await insertItems(store, items);
  assert.deepEqual(result, { written: items.length, skipped: 0, refused: [] });
}
