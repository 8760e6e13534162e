import assert from 'node:assert/strict';
import { numberRange } from '../support/store/number-range.ts';
import fc from '../support/fast-check.ts';
import { bookmarkOf } from '../../src/store/bookmark.ts';
import { Decimal128, Double, Int32, Long, ObjectId } from '../../src/store/bson.ts';
import type { Plan } from '../../src/store/store.ts';
import {
  compareItems,
  exactDigits,
  expectedItems,
  inCategory,
  makeItem,
  shown,
} from '../support/store/items.ts';
import type { Id, Item, Price } from '../support/store/items.ts';
import { isBoundDigits, nearPrice } from '../support/store/prices.ts';
import { PLENTY, assertChain } from '../support/store/reading.ts';
import type { ContractTest, OpenStore } from './adapters.ts';

const id: fc.Arbitrary<Id> = fc.oneof(
  fc.integer({ min: -20, max: 20 }).map((n) => new Int32(n)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((n) => Long.fromBigInt(n)),
  fc.integer({ min: -3, max: 3 }).map((n) => new Double(n * 2 ** 52)),
  fc.string({ unit: fc.constantFrom('a', 'b', '\0', 'é', '￿', '𝄞'), maxLength: 6 }),
  fc.nat(30).map((n) => new ObjectId(n.toString(16).padStart(24, '0'))),
);
const price: fc.Arbitrary<Price> = fc.oneof(
  fc.integer({ min: -3, max: 3 }).map((n) => new Int32(n)),
  fc.integer({ min: -9, max: 9 }).map((n) => new Double(n / 3)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((n) => Long.fromBigInt(n)),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => new Double(n)),
  nearPrice(),
  fc.constantFrom('1E+6000', '-1E+6000', '1E-6000', '-1E-6000', '0E+10').map((n) => Decimal128.fromString(n)),
);
const category = fc.constantFrom('', 'a', 'aa', 'é', 'a\0');
const item: fc.Arbitrary<Item> = fc
  .tuple(id, category, price, fc.string({ maxLength: 40 }))
  .map(([_id, name, value, note]) => makeItem(_id, name, value, note));
const bound = fc.option(
  fc.oneof(
    fc.integer({ min: -4, max: 4 }).map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    nearPrice().map(shown),
    nearPrice().map(exactDigits).filter(isBoundDigits),
  ),
  { nil: undefined },
);
const plan: fc.Arbitrary<Plan> = fc
  .tuple(
    fc.constantFrom(1 as const, -1 as const),
    fc.option(category, { nil: undefined }),
    fc.option(fc.tuple(bound, bound), { nil: undefined }),
  )
  .map(([direction, name, range]) => ({
    sort: range ? 'price' : '_id',
    direction,
    ...(name !== undefined && inCategory(name)),
    ...(range?.some((end) => end !== undefined) && { range: numberRange(...range) }),
  }));

type Step = readonly [way: Plan, bookmarked: Item, batchRows: number];

/** Random rows, plans and bookmarks against a sorted array. */
export function modelContract(test: ContractTest<OpenStore>): void {
  test('random rows read by random plans from random bookmarks equal a sorted array', async ({
    store,
    slots,
    remove,
  }) => {
    const step = fc.tuple(plan, item, fc.integer({ min: 1, max: 9 }));
    let underWay = Promise.resolve();
    const property = fc.asyncProperty(
      fc.array(item, { maxLength: 40 }),
      fc.array(step, { minLength: 1, maxLength: 6 }),
      (rows, steps) => (underWay = walk(rows, steps)),
    );
    const walk = async (rows: readonly Item[], steps: readonly Step[]): Promise<void> => {
      const model: Item[] = [];
      try {
        await store.items.insert(
          rows.map(({ bytes }) => bytes),
          'replace',
        );
        for (const row of rows) put(model, row);
        for (const [way, bookmarked, size] of steps) {
          const behind = expectedItems(model, way).filter(
            (row) => compareItems(row, bookmarked, way) * way.direction > 0,
          );
          const from = { after: bookmarkOf(bookmarked.bytes, way) };
          await assertChain(store.items, way, {}, { rows: size, bytes: PLENTY }, expectedItems(model, way));
          await assertChain(store.items, way, from, { rows: size, bytes: PLENTY }, behind);
          await store.items.insert([bookmarked.bytes], 'replace');
          put(model, bookmarked);
        }
      } finally {
        for (const { id: gone } of model) await remove(gone);
      }
    };
    await fc.assert(property, {
      numRuns: process.env.LONG ? 500 : 12,
      interruptAfterTimeLimit: process.env.LONG ? 60_000 : 3_000,
      markInterruptAsFailure: false,
    });
    await underWay; // a time limit leaves the last walk running
    assert.equal(slots.taken, 0);
  });
}

function put(model: Item[], row: Item): void {
  const at = model.findIndex((other) => compareItems(other, row, { sort: '_id' }) === 0);
  if (at >= 0) model.splice(at, 1);
  model.push(row);
}
