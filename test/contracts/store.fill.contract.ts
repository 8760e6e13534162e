import assert from 'node:assert/strict';
import { CommandRefusal } from '../../src/base/errors.ts';
import { Int32 } from '../../src/store/values/bson.ts';
import type { OwnedCollection } from '../../src/store/store.ts';
import { startFill, fillWith } from '../support/store/filling.ts';
import {
  expectedItems,
  inCategory,
  insertItems,
  makeItem,
  makeItems,
  type Item,
} from '../support/store/items.ts';
import type { StoreTest } from '../support/store/open-store.ts';
import { NEVER, PLENTY, assertChain } from '../support/store/reading.ts';

const BY_ID = { sort: '_id', direction: 1 } as const;
const PLANS = [
  BY_ID,
  { sort: 'price', direction: -1 },
  { sort: 'price', direction: 1, ...inCategory('b') },
] as const;
const SIZE = { rows: 1_000, bytes: PLENTY };

const bytesOf = (items: readonly Item[]) => items.map(({ bytes }) => bytes);

/** Every read finds these rows and no others. */
async function assertRows(items: OwnedCollection, expected: readonly Item[]): Promise<void> {
  for (const plan of PLANS) {
    await assertChain(items, plan, {}, SIZE, expectedItems(expected, plan));
    assert.equal((await items.count(plan, 'exact', NEVER)).rows, expectedItems(expected, plan).length);
  }
}

/** The rows of an import, and what readers see of them. */
export function fillContract(test: StoreTest): void {
  test('readers of rows that are replaced see the old ones until the new ones are all there', async ({
    store,
  }) => {
    const before = makeItems(60);
    const after = makeItems(100).slice(40);
    await insertItems(store.items, before);
    const { identity } = await store.items.describe(NEVER);
    const fill = startFill(store.items, { replaces: true });
    for (const some of [after.slice(0, 30), after.slice(30)]) {
      await fill.asks();
      await assertRows(store.items, before);
      fill.add(bytesOf(some));
    }
    await fill.asks();
    await assertRows(store.items, before);
    await assertChain(
      store.items,
      { ...BY_ID, ...(identity !== undefined && { identity }) },
      {},
      SIZE,
      expectedItems(before, BY_ID),
    );
    fill.end();
    await fill.done;
    assert.deepEqual(
      [fill.removed, fill.result],
      [
        { rows: 60, is: 'exact' },
        { written: 60, skipped: 0 },
      ],
    );
    await assertRows(store.items, after);
    if (identity === undefined) return;
    await assert.rejects(store.items.read({ ...BY_ID, identity }, {}, SIZE, NEVER), {
      code: 'collection-replaced',
    });
  });

  test('a collection whose rows an import replaces is not dropped or renamed before its end', async ({
    store,
  }) => {
    const before = makeItems(10);
    await insertItems(store.items, before);
    const fill = startFill(store.items, { replaces: true });
    await fill.asks();
    for (const work of [() => store.items.drop(), () => store.items.rename('elsewhere')])
      await assert.rejects(work, CommandRefusal);
    await assertRows(store.items, before);
    fill.add(bytesOf(before.slice(5)));
    fill.end();
    await fill.done;
    await assertRows(store.items, before.slice(5));
    await store.items.drop();
    await assert.rejects(store.items.read(BY_ID, {}, SIZE, NEVER));
  });

  test('rows that are to be replaced stay when the new ones do not come to their end', async ({ store }) => {
    const before = makeItems(60);
    await insertItems(store.items, before);
    const fill = startFill(store.items, { replaces: true });
    fill.add(bytesOf(makeItems(100).slice(40)));
    await fill.asks();
    fill.fail(new Error('the source is broken'));
    await assert.rejects(fill.done, /the source is broken/);
    assert.deepEqual([fill.removed, fill.result], [null, { written: 0, skipped: 0 }]);
    await assertRows(store.items, before);
    const again = await fillWith(store.items, bytesOf(before.slice(0, 7)), { replaces: true });
    assert.deepEqual(again.removed, { rows: 60, is: 'exact' });
    await assertRows(store.items, before.slice(0, 7));
  });

  for (const onConflict of ['fail', 'skip', 'replace'] as const)
    test(`rows that come twice in an import are kept as "${onConflict}" says`, async ({ store }) => {
      const rows = makeItems(30);
      const again = makeItem(rows[3]?.id ?? assert.fail(), 'b', new Int32(5), 'again');
      for (const replaces of [true, false]) {
        if (!replaces) await store.items.clear(NEVER);
        const fill = await fillWith(store.items, [...bytesOf(rows), again.bytes], { onConflict, replaces });
        const isReplaced = onConflict === 'replace';
        assert.deepEqual(fill.refused, onConflict === 'fail' ? [31] : []);
        assert.deepEqual(fill.result, {
          written: isReplaced ? 31 : 30,
          skipped: onConflict === 'skip' ? 1 : 0,
        });
        await assertRows(store.items, isReplaced ? rows.map((row, n) => (n === 3 ? again : row)) : rows);
      }
    });

  test('an import that would replace the rows of another one is refused before it reads', async ({
    store,
  }) => {
    const before = makeItems(20);
    const after = makeItems(40).slice(20);
    await insertItems(store.items, before);
    const fill = startFill(store.items, { replaces: true });
    await fill.asks();
    const other = startFill(store.items, { replaces: true });
    await assert.rejects(
      other.done,
      (error) => error instanceof CommandRefusal && error.message.includes('Another import'),
    );
    await assert.rejects(other.asks());
    fill.add(bytesOf(after));
    fill.end();
    await fill.done;
    await assertRows(store.items, after);
  });
}
