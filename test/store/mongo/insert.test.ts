import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSONRegExp } from 'mongodb';
import {
  BSON,
  Code,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  type Document,
} from '../../../src/store/values/bson.ts';
import type { OnConflict } from '../../../src/store/store.ts';
import { testMongoStore } from '../../support/store/mongo/mongo.ts';
import { testsWith } from '../../support/tests-with.ts';

/** With _id first: the server moves it there. */
const rowOf = (document: Document): Buffer =>
  Buffer.from(BSON.serialize({ _id: document._id as unknown, category: 'a', price: 1, ...document }));

for (const [kind, options] of [
  ['clustered', {}],
  ['plain', { existing: {} }],
] as const)
  test(`an existing id is recognized in a ${kind} collection, whatever its type`, async (t) => {
    const opened = await testMongoStore(t, options);
    if (!opened) return;
    const { items } = opened.store;
    const ids = ['a\0', 'a\0b', new Double(1.5), Decimal128.fromString('0.1'), new Date(1), { a: 'x' }, true];
    const rows = ids.map((_id) => rowOf({ _id }));
    const count = rows.length;
    assert.deepEqual(await items.insert(rows, 'fail'), { written: count, skipped: 0, refused: [] });
    assert.deepEqual(await items.insert(rows, 'skip'), { written: 0, skipped: count, refused: [] });
    assert.deepEqual(await items.insert(rows, 'replace'), { written: count, skipped: 0, refused: [] });
    const { written, refused } = await items.insert(rows, 'fail');
    assert.equal(written, 0);
    for (const { reason } of refused) assert.match(reason, /with its _?id exists/);
  });

const it = testsWith(testMongoStore);

it('rows are written unchanged, with any types and names', async (opened) => {
  const rows = [
    { _id: 1, a: Long.fromNumber(5), b: new Int32(5), c: new Double(5), d: Decimal128.fromString('5.00') },
    { _id: 2, 'a.b': 1, nested: { $gt: 1, __proto__x: null } },
    {
      _id: 3,
      r: new BSONRegExp('a', 'ix'),
      nan: NaN,
      minus: -0,
      deep: [[[{ _id: 1 }]]],
      empty: {},
      none: null,
    },
    JSON.parse('{"_id":4,"__proto__":{"x":1},"constructor":2,"":3}') as Document,
    Object.fromEntries([['_id', 5], ...Array.from({ length: 100 }, (_, n) => [`näme${n}`, n])]) as Document,
    { _id: 6, list: Array.from({ length: 101 }, (_, n) => [n]), code: new Code('f()', { x: { y: 1 } }) },
    { _id: 7, code: new Code('f()'), key: [new MinKey(), new MaxKey()], far: new Date(-8.64e15) },
  ].map(rowOf);
  const stored = opened.client
    .db()
    .collection<{ _id: number }>('items')
    .find({}, { raw: true })
    .sort({ _id: 1 });
  for (const onConflict of ['fail', 'replace'] satisfies OnConflict[]) {
    const { refused } = await opened.store.items.insert(rows, onConflict);
    assert.deepEqual(refused, []);
    const found = (await stored.toArray()) as unknown as Uint8Array[];
    assert.deepEqual(
      found.map((row) => Buffer.from(row).toString('hex')),
      rows.map((row) => row.toString('hex')),
    );
    stored.rewind();
  }
});

it('a conflict in a foreign unique index is not taken for an existing id', async (opened) => {
  await opened.client.db().collection('items').createIndex({ sku: 1 }, { unique: true }, {});
  await opened.store.items.insert([rowOf({ _id: 1, sku: 7 })], 'fail');
  const result = await opened.store.items.insert(
    [rowOf({ _id: 2, sku: 7 }), rowOf({ _id: 1, sku: 8 })],
    'skip',
  );
  assert.deepEqual([result.written, result.skipped, result.refused.length], [0, 1, 1]);
  assert.match(result.refused[0]?.reason ?? '', /duplicate key.*sku.*\(MongoDB error 11000\)/);
});

test('a row that a foreign validator rejects is refused by its position', async (t) => {
  const opened = await testMongoStore(t, { existing: { validator: { stock: { $gte: 0 } } } });
  if (!opened) return;
  const rows = [rowOf({ _id: 1, stock: 1 }), rowOf({ _id: 2, stock: -1 }), rowOf({ _id: 3, stock: 2 })];
  const { written, refused } = await opened.store.items.insert(rows, 'fail');
  assert.equal(written, 2);
  assert.deepEqual(refused, [{ index: 1, reason: 'Document failed validation (MongoDB error 121)' }]);
});

it('many rows are written in one call', async (opened) => {
  const rows = Array.from({ length: 11_000 }, (_, n) => rowOf({ _id: n % 10_500 }));
  assert.deepEqual(await opened.store.items.insert(rows, 'skip'), {
    written: 10_500,
    skipped: 500,
    refused: [],
  });
});
