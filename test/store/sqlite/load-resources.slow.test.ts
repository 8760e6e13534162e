import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON, Double, Int32, ObjectId } from '../../../src/store/bson.ts';
import type { OwnedCollection, Load, OnConflict } from '../../../src/store/store.ts';
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
        ...{ filler: 'x'.repeat(m), _id, status: value, total: VALUES[(n + m) % VALUES.length] },
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

async function loadInto(
  rows: OwnedCollection,
  onConflict: OnConflict,
  refused: number[],
  replaces = false,
): Promise<Load> {
  const load = await rows.load?.(onConflict, (at) => refused.push(at), replaces);
  return load ?? assert.fail('the store begins a load');
}

async function addAll(load: Load, rows: readonly Uint8Array[]): Promise<void> {
  for (const [at, row] of rows.entries()) await load.add(row, at);
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
      const [inserted, loaded] = [await temporaryFolder(t), await temporaryFolder(t)];
      const results: unknown[] = [];
      for (const directory of [inserted, loaded]) {
        const store = await openFor(t, directory);
        const [orders, others] = [await store.open(ORDERS), await store.open(OTHERS)];
        await others.insert(rows, 'fail');
        if (directory === inserted) {
          const { written, skipped, refused } = await orders.insert(all, onConflict);
          results.push({ written, skipped, refused: refused.map(({ index }) => index) });
        } else {
          const refused: number[] = [];
          const load = await loadInto(orders, onConflict, refused);
          await addAll(load, all);
          const { written, skipped } = await load.finish();
          results.push({ written, skipped, refused: refused.sort((a, b) => a - b) });
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
  const load = await loadInto(orders, 'fail', []);
  await addAll(load, rows);
  await load.finish();
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
  const replacing = await loadInto(orders, 'fail', [], true);
  assert.deepEqual(replacing.removed, { rows: 3, is: 'exact' });
  await addAll(replacing, rows.slice(2));
  await replacing.finish();
  assert.deepEqual(
    (await orders.describe(NEVER)).indexes.map(({ refused }) => refused),
    [undefined, undefined, undefined, undefined],
  );
  assert.equal(contentOf(directory).rows.length, 1);
});

test('values of a resource reject during its load, new indexes wait for its end, and other resources are read', async (t) => {
  const directory = await temporaryFolder(t);
  const [store, beside] = [await openFor(t, directory), await openFor(t, directory)];
  const [orders, there] = [await store.open(ORDERS), await beside.open(ORDERS)];
  const others = await beside.open(OTHERS);
  const rows = makeRows();
  const load = await loadInto(orders, 'fail', []);
  await addAll(load, rows);
  const index = (await there.describe(NEVER)).indexes.at(-1) ?? assert.fail();
  await assert.rejects(there.nextValue(index, [], {}, NEVER), { code: 'not-ready', status: 503 });
  let isOpened = false;
  const opened = beside.open({ ...ORDERS, indexes: [['filler']] }).finally(() => (isOpened = true));
  assert.equal((await readRows(others, BY_ID, {}, SIZE)).rows.length, 0, 'other resources are read as ever');
  assert.equal(isOpened, false);
  await load.finish();
  assert.equal((await readRows(await opened, BY_ID, {}, SIZE)).rows.length, rows.length);
});
