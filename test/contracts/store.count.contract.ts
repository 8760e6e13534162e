import assert from 'node:assert/strict';
import type { Bookmark } from '../../src/store/bookmark.ts';
import { BSON, ObjectId, UUID } from '../../src/store/values/bson.ts';
import { numberRange } from '../support/store/number-range.ts';
import type { CountMode, IdRange, Plan } from '../../src/store/store.ts';
import type { StoreTest } from '../support/store/open-store.ts';
import { inCategory } from '../support/store/items.ts';
import { NEVER, walk } from '../support/store/reading.ts';

const MODES: readonly CountMode[] = ['estimated', 'exact'];

/** Counts equal the rows of a plan, or are marked as inexact. */
export function countContract(test: StoreTest): void {
  test('nothing is counted for a client that has left, nor in an empty store', async (opened) => {
    const plan: Plan = { sort: 'price', direction: 1, range: numberRange('0', undefined) };
    for (const mode of MODES) {
      assert.deepEqual(await opened.store.items.count(plan, mode, NEVER), { rows: 0, is: 'exact' });
      const gone = AbortSignal.abort(new Error('gone'));
      await assert.rejects(opened.store.items.count(plan, mode, gone), /gone/);
    }
  });
}

const BY_ID: Plan = { sort: '_id', direction: 1 };
const ROWS = 6_000;

/** Ids of several types. */
function idOf(n: number): unknown {
  const hex = n.toString(16);
  return [n, `s${n}`, new UUID(hex.padStart(32, '0')), new ObjectId(hex.padStart(24, '0'))][n % 4];
}

function rangesOf(ids: readonly Bookmark[]): IdRange[] {
  return [undefined, ...ids].map((from, n) => {
    const to = ids[n];
    return { ...(from && { from }), ...(to && { to }) };
  });
}

/** Parts are disjoint, together the whole set, and of about equal size. Each is a plan like others. */
export function splitContract(test: StoreTest): void {
  test('parts of ids of all types are exactly the set, and balanced within 20 %', async (opened) => {
    const { items } = opened.store;
    const rows = Array.from({ length: ROWS }, (_, n) =>
      BSON.serialize({ _id: idOf(n), category: n % 3 ? 'a' : 'b', price: n }),
    );
    await items.insert(rows, 'fail');
    for (const parts of [1, 2, 8, 64])
      for (const category of [undefined, 'a']) {
        const plan = { ...BY_ID, ...(category !== undefined && inCategory(category)) };
        const ids = await items.split(plan, parts, NEVER);
        const sizes: number[] = [];
        for (const range of rangesOf(ids))
          sizes.push((await walk(items, { ...plan, ids: range }, 10_000)).length);
        const total = sizes.reduce((sum, size) => sum + size, 0);
        assert.equal(total, category === undefined ? ROWS : ROWS - ROWS / 3);
        assert.equal(sizes.length, parts);
        const largest = Math.max(...sizes.map((size) => Math.abs((size * parts) / total - 1)));
        assert.ok(largest < 0.2, `${parts} parts: ${sizes.join(' ')}`);
      }
  });

  test('an empty store is one part, and fewer rows than parts give fewer parts', async (opened) => {
    const { items } = opened.store;
    assert.deepEqual(await items.split(BY_ID, 8, NEVER), []);
    await items.insert(
      [1, 2].map((_id) => BSON.serialize({ _id, category: 'c', price: 1 })),
      'fail',
    );
    assert.ok((await items.split(BY_ID, 8, NEVER)).length <= 2);
    assert.equal(opened.slots.taken, 0);
  });
}
