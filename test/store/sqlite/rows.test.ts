import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { BSON, Decimal128, Int32 } from '../../../src/store/bson.ts';
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
    { code: 'invalid-cursor' },
  );
  assert.equal(slots.taken, 0);
});
