import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '../../../src/errors.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { BSON, Decimal128, Double, Int32, Long, ObjectId, UUID } from '../../../src/store/bson.ts';
import { testSqlite } from '../../support/store/sqlite/sqlite.ts';
import { NEVER, PLENTY } from '../../support/store/reading.ts';

const SIZE = { rows: 10, bytes: PLENTY };
const good = { _id: 1, category: 'b', price: 1 };

const BYTES = BSON.serialize(good);

/** Rows that the embedded store refuses, and the error of each. */
const REFUSED: readonly (readonly [row: object, reason: RegExp])[] = [
  [{ ...good, _id: [1] }, /^_id is of BSON type 4, which no key can have$/],
  [{ category: 'b', price: 1 }, /^_id is missing$/],
  [{ _id: 1, price: 1 }, /^category is missing, expected a string$/],
  [{ ...good, category: 7 }, /^category is 7, expected a string$/],
  [{ _id: 1, category: 'b' }, /^price is missing, expected a finite number$/],
  [{ ...good, price: 'x' }, /^price is of BSON type string, expected a finite number$/],
  [{ ...good, price: Infinity }, /^price is Infinity, expected a finite number$/],
  [{ ...good, price: new Decimal128('-Infinity') }, /^price is -Infinity, expected a finite number$/],
  [{ ...good, price: new Decimal128('NaN') }, /^price is NaN, expected a finite number$/],
  [{ ...good, more: 'x'.repeat(16 * 1024 * 1024) }, /^a row has at most 16777216 bytes, got 16777/],
  ...[new Uint8Array(0), BYTES.subarray(0, -1), Buffer.concat([BYTES, BYTES]), Buffer.alloc(40, 255)].map(
    (bytes) => [bytes, /BSON document/] as const,
  ),
];

test('a row that cannot be stored is refused with what was expected and what was received', async (t) => {
  const { store } = await testSqlite(t);
  const { written, refused } = await store.items.insert(
    REFUSED.map(([row]) => (row instanceof Uint8Array ? row : BSON.serialize(row))),
    'fail',
  );
  assert.equal(written, 0);
  assert.deepEqual(
    refused.map(({ index }) => index),
    [...REFUSED.keys()],
  );
  refused.forEach(({ reason }, index) => assert.match(reason, REFUSED[index]?.[1] ?? /never/));
});

test('a bookmark without the value that the order needs is an invalid cursor', async (t) => {
  const { store, slots } = await testSqlite(t);
  await store.items.insert([BSON.serialize(good)], 'fail');
  const withoutPrice = makeBookmark({ _id: new Int32(1) });
  await assert.rejects(
    store.items.read({ sort: 'price', direction: 1 }, { after: withoutPrice }, SIZE, NEVER),
    isInvalidCursor,
  );
  assert.equal(slots.taken, 0);
});

test('a bookmark of a type that a row can have is a position in the order, whether a row has it or not', async (t) => {
  const { store } = await testSqlite(t);
  const ids = [
    new Int32(1),
    'a',
    new UUID('10000000-0000-4000-8000-000000000000'),
    new ObjectId('1'.repeat(24)),
  ];
  await store.items.insert(
    ids.map((_id) => BSON.serialize({ ...good, _id })),
    'fail',
  );
  const after: [unknown, number][] = [
    [new Double(-Infinity), 4],
    [new Double(0.5), 4],
    [Long.MAX_VALUE, 3],
    [new Double(Infinity), 3],
    ['', 3],
    ['zz', 2],
    [new UUID('f0000000-0000-4000-8000-000000000000'), 1],
    [new ObjectId('f'.repeat(24)), 0],
  ];
  for (const [_id, rows] of after) {
    const from = { after: makeBookmark({ _id }) };
    const batch = await store.items.read({ sort: '_id', direction: 1 }, from, SIZE, NEVER);
    batch.release();
    assert.equal(batch.rows, rows, String(_id));
  }
});

function isInvalidCursor(error: unknown): boolean {
  return error instanceof AppError && error.code === 'invalid-cursor';
}
