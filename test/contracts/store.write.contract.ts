import assert from 'node:assert/strict';
import { BSON, Decimal128, Double, Int32 } from '../../src/store/values/bson.ts';
import { numberRange } from '../support/store/number-range.ts';
import type { Collection, Plan } from '../../src/store/store.ts';
import {
  CATEGORIES,
  compareItems,
  expectedItems,
  inCategory,
  makeItem,
  makeItems,
  insertItems,
} from '../support/store/items.ts';
import type { Item } from '../support/store/items.ts';
import { PLENTY, assertChain, readRows, walk } from '../support/store/reading.ts';
import type { StoreTest } from '../support/store/open-store.ts';

const SIZE = { rows: 50, bytes: PLENTY };
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
function* allPlans(): Generator<Plan, void, undefined> {
  for (const direction of [1, -1] as const)
    for (const category of [undefined, ...CATEGORIES, 'boo', '']) {
      const filter = category === undefined ? {} : inCategory(category);
      yield { sort: '_id', direction, ...filter };
      for (const range of RANGES) yield { sort: 'price', direction, ...filter, ...range };
    }
}

/** The results of writes, and what readers see of them. */
export function writeContract(test: StoreTest): void {
  test('an existing id is skipped, replaced or refused, as requested', async (opened) => {
    const { items } = opened.store;
    for (const plan of allPlans()) await assertChain(items, plan, {}, SIZE, []);
    const old: readonly [Item, Item] = [
      makeItem('a', 'b', new Int32(1)),
      makeItem(new Int32(7), 'b', new Int32(2)),
    ];
    const mixed: readonly [Item, Item, Item, Item] = [
      makeItem('new 1', 'b', new Int32(3)),
      makeItem('a', 'books', new Int32(4), 'other'),
      makeItem(new Double(7), 'books', new Int32(5), 'the same number'),
      makeItem('new 2', 'b', new Int32(6)),
    ];
    const [one, , , two] = mixed;
    assert.deepEqual(await insertItems(items, old), { written: 2, skipped: 0, refused: [] });
    assert.deepEqual(await insertItems(items, mixed, 'skip'), { written: 2, skipped: 2, refused: [] });
    await assertChain(items, BY_ID, {}, SIZE, expectedItems([...old, one, two], BY_ID));

    const failed = await insertItems(items, [...mixed, makeItem('new 3', 'b', new Int32(0))]);
    assert.deepEqual([failed.written, failed.skipped], [1, 0]);
    assert.deepEqual(
      failed.refused.map(({ index }) => index),
      [0, 1, 2, 3],
    );
    for (const { reason } of failed.refused) assert.match(reason, /with its _?id exists/);

    await opened.remove('new 3');
    const replaced = await insertItems(items, mixed.slice(0, 2), 'replace');
    assert.deepEqual(replaced, { written: 2, skipped: 0, refused: [] });
    const now = [one, mixed[1], old[1], two];
    for (const plan of allPlans()) await assertChain(items, plan, {}, SIZE, expectedItems(now, plan));
  });

  test('a replaced row is found under its new price and category only', async (opened) => {
    const { items } = opened.store;
    const before = makeItems(60);
    await insertItems(items, before);
    const after = before.map(({ id, category }, n) =>
      makeItem(
        id,
        n % 2 === 0 ? 'books' : category,
        n % 3 === 0 ? new Int32(0) : new Double(n / 8),
        'changed',
      ),
    );
    await insertItems(items, after, 'replace');
    for (const plan of allPlans()) await assertChain(items, plan, {}, SIZE, expectedItems(after, plan));
  });

  test('of an id that occurs twice in one call the first row stays, or the last one replaces it', async (opened) => {
    const { items } = opened.store;
    const twice = [makeItem('a', 'b', new Int32(1), 'first'), makeItem('a', 'b', new Int32(2), 'last')];
    assert.deepEqual(await insertItems(items, twice, 'skip'), { written: 1, skipped: 1, refused: [] });
    await assertChain(items, BY_PRICE, {}, SIZE, twice.slice(0, 1));
    assert.deepEqual(await insertItems(items, twice, 'replace'), { written: 2, skipped: 0, refused: [] });
    await assertChain(items, BY_PRICE, {}, SIZE, twice.slice(1));
    assert.deepEqual(await items.insert([], 'fail'), { written: 0, skipped: 0, refused: [] });
  });

  test('rows that are not items are refused by their position with the reason, the others are written', async (opened) => {
    const { items } = opened.store;
    const good = makeItem('good', 'b', new Int32(1));
    const { bytes } = good;
    const row = { _id: 'bad', category: 'b', price: 1 };
    const bad: readonly (readonly [row: object, reason: RegExp])[] = [
      [{ ...row, _id: [4] }, /_id/],
      [{ category: 'b', price: 1 }, /^_id is missing$/],
      [{ _id: 'bad', price: 1 }, /^category is missing, expected a string$/],
      [{ ...row, category: 7 }, /^category is 7, expected a string$/],
      [{ _id: 'bad', category: 'b' }, /^price is missing, expected a finite number$/],
      [{ ...row, price: '1' }, /^price is of BSON type string, expected a finite number$/],
      [{ ...row, price: null }, /^price is /],
      [{ ...row, price: [1, 2] }, /^price is /],
      [{ ...row, price: NaN }, /^price is NaN, expected a finite number$/],
      [{ ...row, price: -Infinity }, /^price is -Infinity, expected a finite number$/],
      [{ ...row, price: new Decimal128('NaN') }, /^price is NaN, expected a finite number$/],
      [{ ...row, more: 'x'.repeat(16 * 1024 * 1024) }, /^a row has at most 16777216 bytes, got 16777/],
      ...[new Uint8Array(0), bytes.subarray(0, -3), Buffer.concat([bytes, bytes]), Buffer.alloc(40, 255)].map(
        (damaged) => [damaged, /BSON document/] as const,
      ),
    ];
    const rows = bad.map(([one]) => (one instanceof Uint8Array ? one : BSON.serialize(one)));
    const result = await items.insert([...rows, bytes], 'fail');
    assert.equal(result.written, 1);
    assert.deepEqual(
      result.refused.map(({ index }) => index),
      [...bad.keys()],
    );
    for (const { index, reason } of result.refused) assert.match(reason, bad[index]?.[1] ?? /never/);
    for (const plan of allPlans()) await assertChain(items, plan, {}, SIZE, expectedItems([good], plan));
  });

  test('while others write, unchanged rows are read exactly once and in order', async ({ store, slots }) => {
    const still = makeItems(300);
    await insertItems(store.items, still);
    const reading = [BY_ID, BY_PRICE, { ...BY_PRICE, direction: -1, ...inCategory('b') } as const].map(
      async (plan) => assertStill(await readWhole(store.items, plan), expectedItems(still, plan)),
    );
    const writing = [0, 1, 2].map(async (writer) => {
      for (let round = 0; round < 20; round++) {
        const rows = Array.from({ length: 10 }, (_, n) =>
          makeItem(`writer ${writer} ${n}`, 'b', new Double(((round * 7 + n) % 40) / 4), `round ${round}`),
        );
        await insertItems(store.items, rows, 'replace');
      }
    });
    await Promise.all([...reading, ...writing]);
    assert.equal(slots.taken, 0);
    const { rows } = await readRows(store.items, BY_ID, {}, { rows: 1000, bytes: PLENTY });
    assert.equal(rows.length, 330);
  });
}

const BY_ID: Plan = { sort: '_id', direction: 1 };
const BY_PRICE: Plan = { sort: 'price', direction: 1 };

async function readWhole(items: Collection, plan: Plan): Promise<Item[]> {
  const found = (await walk(items, plan, 9)).map(itemOf);
  for (const [n, item] of found.entries()) {
    const before = found[n - 1];
    assert.ok(!before || compareItems(before, item, plan) * plan.direction < 0, 'rows come in order');
  }
  return found;
}

function itemOf(bytes: Buffer): Item {
  const { _id, category, price } = BSON.deserialize(bytes, { promoteValues: false, promoteBuffers: false });
  return { id: _id as Item['id'], category: category as string, price: price as Item['price'], bytes };
}

function assertStill(found: readonly Item[], still: readonly Item[]): void {
  const untouched = found.filter(({ id }) => typeof id !== 'string' || !id.startsWith('writer'));
  assert.deepEqual(
    untouched.map(({ bytes }) => bytes.toString('hex')),
    still.map(({ bytes }) => bytes.toString('hex')),
  );
}
