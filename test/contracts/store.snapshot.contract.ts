import assert from 'node:assert/strict';
import { numberRange } from '../support/store/number-range.ts';
import { bookmarkOf } from '../../src/store/bookmark.ts';
import { Double } from '../../src/store/values/bson.ts';
import type { OwnedCollection, Plan } from '../../src/store/store.ts';
import { expectedItems, inCategory, makeItem, makeItems } from '../support/store/items.ts';
import type { Item } from '../support/store/items.ts';
import { NEVER, PLENTY, assertChain, readRows } from '../support/store/reading.ts';
import type { StoreTest } from '../support/store/open-store.ts';

const SIZE = { rows: 7, bytes: PLENTY };
const PLANS: readonly Plan[] = [
  { sort: '_id', direction: 1 },
  { sort: '_id', direction: -1 },
  { sort: '_id', direction: -1, ...inCategory('books') },
  { sort: 'price', direction: 1, ...inCategory('b'), range: numberRange(undefined, '4') },
  { sort: 'price', direction: -1 },
];

/** Reading the rows of a point in time. */
export function snapshotContract(test: StoreTest): void {
  test('rows at a point in time are as they were, whatever was written later, or the store has no points in time', async (opened) => {
    const { items } = opened.store;
    const before = makeItems(64);
    await insert(items, before, 'fail');
    const { now: at = null } = await items.describe(NEVER, { now: true });
    if (at === null) return assertUnsupported(items);

    const changed = before.filter((_, n) => n % 2 === 0);
    await insert(
      items,
      changed.map(({ id, category }) => makeItem(id, category, new Double(2.75), 'changed')),
      'replace',
    );
    for (const { id } of before.filter((_, n) => n % 4 === 1)) await opened.remove(id);
    await insert(items, [makeItem('another', 'b', new Double(3))], 'fail');
    for (const plan of PLANS) {
      const expected = expectedItems(before, plan);
      await assertChain(items, { ...plan, at }, {}, SIZE, expected);
      const middle = expected[5];
      assert.ok(middle);
      const after = bookmarkOf(middle.bytes, plan);
      await assertChain(items, { ...plan, at }, { after }, SIZE, expected.slice(6));
    }
    const { now = null } = await items.describe(NEVER, { now: true });
    assert.ok(now !== null && now > at, 'time advances');
    const { rows } = await readRows(items, { sort: '_id', direction: 1, at: now }, {}, { ...SIZE, rows: 99 });
    assert.equal(rows.length, 64 - 16 + 1, 'the present has all acknowledged writes');
    assert.equal(opened.slots.taken, 0);
  });

  test('a time that is in the future or gone has its own error', async (opened) => {
    const { items } = opened.store;
    const { now: at = null } = await items.describe(NEVER, { now: true });
    if (at === null) return assertUnsupported(items);
    const readAt = (time: bigint) => items.read({ sort: 'price', direction: 1, at: time }, {}, SIZE, NEVER);
    const hour = 3600n << 32n;
    await assert.rejects(readAt(at + hour), { code: 'invalid-parameter', parameter: 'at' });
    await assert.rejects(readAt(2n ** 64n - 1n), { code: 'invalid-parameter' });
    await assert.rejects(readAt(0n), { code: 'invalid-parameter' });
    await assert.rejects(readAt(at - hour), { code: 'snapshot-expired', status: 410 });
    assert.equal(opened.slots.taken, 0);
  });
}

async function assertUnsupported(items: OwnedCollection): Promise<void> {
  const read = items.read({ sort: '_id', direction: 1, at: 1n << 32n }, {}, SIZE, NEVER);
  await assert.rejects(read, { code: 'snapshot-unsupported', status: 400 });
}

async function insert(
  store: OwnedCollection,
  items: readonly Item[],
  how: 'fail' | 'replace',
): Promise<void> {
  const rows = items.map(({ bytes }) => bytes);
  assert.deepEqual(await store.insert(rows, how), { written: items.length, skipped: 0, refused: [] });
}
