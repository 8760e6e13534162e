import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON, Double, Int32, ObjectId } from '../../../src/store/values/bson.ts';
import { fillWith, startFill } from '../../support/store/filling.ts';
import { openFor, openRaw } from '../../support/store/sqlite/sqlite.ts';
import { NEVER, PLENTY, readRows } from '../../support/store/reading.ts';
import { SCALARS } from '../../support/store/values.ts';
import { temporaryFolder } from '../../support/directory.ts';

const BY_ID = { sort: '_id', direction: 1 } as const;
const SIZE = { rows: 10_000, bytes: PLENTY };
const ORDERS = {
  name: 'orders',
  collection: 'orders',
  indexes: [['status', 'at'], ['customer.country'], ['total']],
};
const OTHERS = { name: 'others', collection: 'others', indexes: [['total']] };

/** Values of every kind that the keys of a load are written for, and of kinds that it leaves to others. */
const VALUES: readonly unknown[] = [undefined, 'ä'.repeat(300), ...SCALARS];

/** Rows with ids of every type, and every value in every indexed field. */
function makeRows(): Uint8Array[] {
  const ids = (n: number): unknown[] => [
    new Int32(n),
    new Double(n + 0.5),
    `id ${n}`,
    new ObjectId(String(n).padStart(24, '0')),
    new Date(n),
    { n },
  ];
  return VALUES.flatMap((value, n) =>
    ids(n).map((_id, m) =>
      BSON.serialize({
        filler: 'x'.repeat(m),
        _id,
        status: value,
        total: VALUES[(n + m) % VALUES.length],
        ...(m > 0 && { at: VALUES[(n * m) % VALUES.length] }),
        customer: m % 2 === 0 ? { name: 'b', country: VALUES[(n + 3) % VALUES.length] } : VALUES[n],
      }),
    ),
  );
}

/** What the file has of the resource, and its faults. */
function contentOf(directory: string) {
  const { rows, sets, faults, close } = openRaw(directory);
  // Others in each file, and the rows of a load lie in order however they came.
  const record = { ...sets.get('resource orders'), identity: '', number: 0, isInOrder: undefined };
  const content = { rows: rows('resource orders'), record, faults: faults('resource orders') };
  close();
  return content;
}

const ORDERS_OF_ROWS: Readonly<Record<string, (rows: Uint8Array[]) => Uint8Array[]>> = {
  'as they come': (rows) => rows,
  'in the opposite order': (rows) => rows.toReversed(),
};

for (const [order, orderOf] of Object.entries(ORDERS_OF_ROWS))
  for (const onConflict of ['skip', 'replace', 'fail'] as const)
    test(`a load of a resource leaves what inserts of the rows leave: ${order}, with "${onConflict}"`, async (t) => {
      const rows = orderOf(makeRows());
      const again = rows.slice(10, 40).map((row) => {
        const { _id } = BSON.deserialize(row, { promoteValues: false });
        return BSON.serialize({ _id: _id as unknown, total: 'again' });
      });
      const refusedRow = BSON.serialize({ _id: [1] });
      const all = [...rows, refusedRow, ...again];
      const inserted = await temporaryFolder(t);
      const loaded = await temporaryFolder(t);
      const results: unknown[] = [];
      for (const directory of [inserted, loaded]) {
        const store = await openFor(t, directory);
        const orders = await store.open(ORDERS);
        const others = await store.open(OTHERS);
        await others.insert(rows, 'fail');
        if (directory === inserted) {
          const { written, skipped, refused } = await orders.insert(all, onConflict);
          results.push({ written, skipped, refused: refused.map(({ index }) => index) });
        } else {
          const { result, refused } = await fillWith(orders, all, { onConflict });
          results.push({ ...result, refused: refused.map((at) => at - 1).sort((a, b) => a - b) });
        }
        assert.equal((await orders.count(BY_ID, 'exact', NEVER)).rows, rows.length);
      }
      assert.deepEqual(results[1], results[0]);
      assert.deepEqual(contentOf(loaded), contentOf(inserted));
      assert.deepEqual(contentOf(loaded).faults, []);
    });

test('a row with an array makes an index unusable in a load, and the other indexes stay', async (t) => {
  const directory = await temporaryFolder(t);
  const orders = await (await openFor(t, directory)).open(ORDERS);
  const rows = [{ total: 1 }, { total: [2, 3] }, { total: 4 }].map((row, _id) =>
    BSON.serialize({ _id, ...row }),
  );
  await fillWith(orders, rows);
  const { indexes } = await orders.describe(NEVER);
  assert.deepEqual(
    indexes.map(({ refused = '' }) => refused.includes('an array at total')),
    [false, false, false, true],
  );
  const index = indexes[2] ?? assert.fail();
  assert.equal(
    (await readRows(orders, { sort: 'customer.country', direction: 1, index }, {}, SIZE)).rows.length,
    3,
  );
  const replacing = await fillWith(orders, rows.slice(2), { replaces: true });
  assert.deepEqual(replacing.removed, { rows: 3, is: 'exact' });
  assert.deepEqual(
    (await orders.describe(NEVER)).indexes.map(({ refused }) => refused),
    [undefined, undefined, undefined, undefined],
  );
  assert.equal(contentOf(directory).rows.length, 1);
});

test('an index that is added during a load is built after it, and other resources are written meanwhile', async (t) => {
  const directory = await temporaryFolder(t);
  const store = await openFor(t, directory);
  const beside = await openFor(t, directory);
  const orders = await store.open(ORDERS);
  const others = await beside.open(OTHERS);
  const rows = makeRows();
  const fill = startFill(orders);
  fill.add(rows);
  await fill.asks();
  assert.equal((await others.insert(rows, 'fail')).written, rows.length);
  const there = await beside.open({ ...ORDERS, indexes: [['filler']] });
  fill.end();
  await fill.done;
  const { index } = await there.addIndex(['filler'], () => undefined, NEVER);
  assert.equal(index.refused, undefined);
  const plan = { sort: 'filler', direction: 1, index } as const;
  assert.equal((await readRows(there, plan, {}, SIZE)).rows.length, rows.length);
  assert.deepEqual(contentOf(directory).faults, []);
});
