import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON, Decimal128, Double, Int32, Long, MaxKey, MinKey, ObjectId } from '../src/store/bson.ts';
import { makeBookmark } from '../src/store/bookmark.ts';
import type { Bookmark } from '../src/store/bookmark.ts';
import { bracketsBelow } from '../src/store/mongo/brackets.ts';
import { commandKey } from '../src/store/mongo/key.ts';
import { compareNumbers, isSameNumber } from '../src/store/mongo/number.ts';
import { rangesOf } from '../src/store/mongo/plan.ts';

/** Ascending; what stands in one line is equal. */
const ASCENDING: readonly (readonly unknown[])[] = [
  [null, undefined, new MinKey()],
  [NaN, new Double(NaN), Decimal128.fromString('NaN')],
  [-Infinity, new Double(-Infinity), Decimal128.fromString('-Infinity')],
  [Decimal128.fromString('-1E+6000')],
  [new Double(-1e300)],
  [Long.MIN_VALUE, new Double(-(2 ** 63)), Decimal128.fromString('-9223372036854775808')],
  [Long.fromString('-9007199254740993')],
  [new Double(-(2 ** 53))],
  [new Int32(-1), new Double(-1), Long.NEG_ONE, Decimal128.fromString('-1.000')],
  [new Double(-5e-324)],
  [Decimal128.fromString('-1E-6000')],
  [0, new Double(-0), new Int32(0), Long.ZERO, Decimal128.fromString('-0E+10')],
  [new Double(5e-324)],
  [Decimal128.fromString('0.1')],
  [0.1, new Double(0.1)], // 0.1000000000000000055...
  [new Int32(10), new Double(10), Decimal128.fromString('1E+1')],
  [new Double(2 ** 53)],
  [Long.fromString('9007199254740993')],
  [Infinity, new Double(Infinity), Decimal128.fromString('Infinity')],
  ['text', new ObjectId(), new MaxKey(), true, new Date(0)],
];

test('numbers of all types are compared exactly, and anything else stands below or above them', () => {
  for (const [i, left] of ASCENDING.entries())
    for (const [j, right] of ASCENDING.entries())
      for (const a of left)
        for (const b of right) {
          assert.equal(Math.sign(compareNumbers(a, b)), Math.sign(i - j), `${String(a)} and ${String(b)}`);
          assert.equal(isSameNumber(a, b), i === j && i > 0 && i < ASCENDING.length - 1);
        }
});

test('below an id come the rest of its type and then each lower type', () => {
  const filters = (id: unknown, type: number) => bracketsBelow(id, type).map(({ filter }) => filter._id);
  assert.deepEqual(filters('b', 2), [
    { $lt: 'b' },
    { $gte: -Infinity },
    { $eq: NaN },
    { $eq: null },
    { $eq: new MinKey() },
  ]);
  assert.deepEqual(filters(new Double(NaN), 1), [
    { $lt: new Double(NaN) },
    { $eq: null },
    { $eq: new MinKey() },
  ]);
  assert.equal(filters(new ObjectId(), 7).length, 8);
  assert.throws(() => bracketsBelow([], 4), TypeError);
});

test('no range is asked for when it is certainly empty', () => {
  for (const direction of [1, -1] as const) {
    const plan = { order: 'price', direction, minPrice: 5, maxPrice: 6 } as const;
    assert.equal(rangesOf({ ...plan, maxPrice: 4 }, null, false).length, 0);
    const beyond = makeBookmark({ price: direction === 1 ? 7 : 4, _id: 1 });
    assert.equal(rangesOf(plan, beyond, false).length, 0);
    assert.equal(rangesOf(plan, makeBookmark({ price: 5.5, _id: 1 }), false).length, 1);
  }
});

test('a range open on one side ends at an infinity, so that no price but numbers is in it', () => {
  const [above] = rangesOf({ order: 'price', direction: 1, minPrice: 5 }, null, false);
  assert.deepEqual([above?.min?.price, above?.max?.price], [5, Infinity]);
  const [below] = rangesOf({ order: 'price', direction: -1, maxPrice: 5 }, null, false);
  assert.deepEqual([below?.min?.price, below?.max?.price], [-Infinity, 5]);
});

test('a value that no command carries exactly is no bookmark', () => {
  const sound = BSON.serialize({ _id: new Date(0) }) as Bookmark;
  assert.deepEqual(commandKey(sound), { _id: new Date(0) });
  const beyond = Buffer.from(sound);
  beyond.writeBigInt64LE(2n ** 60n, 9);
  assert.throws(() => commandKey(beyond as unknown as Bookmark), { code: 'invalid-cursor' });
  const symbol = Buffer.from(BSON.serialize({ _id: 'x' }));
  symbol.writeUInt8(0x06, 4); // undefined, deprecated
  assert.throws(() => commandKey(symbol as unknown as Bookmark));
  const nan = Buffer.from(BSON.serialize({ _id: NaN }));
  nan.writeUInt8(0xff, nan.length - 2); // another bit pattern of NaN
  assert.ok(commandKey(nan as unknown as Bookmark));
});
