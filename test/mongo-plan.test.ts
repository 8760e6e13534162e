import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON, Decimal128, Double, Int32, Long, MaxKey, MinKey, ObjectId } from '../src/store/bson.ts';
import { BSON_TYPE } from '../src/store/bson-types.ts';
import { makeBookmark } from '../src/store/bookmark.ts';
import type { Bookmark } from '../src/store/bookmark.ts';
import { bracketsBelow } from '../src/store/mongo/descending-ids.ts';
import { commandKey } from '../src/store/mongo/key.ts';
import { compareNumbers, isSameNumber } from '../src/store/number.ts';
import { compareIds } from '../src/store/mongo/order.ts';
import { rangesOf } from '../src/store/mongo/plan.ts';
import { stretchesOf, type End, type Stretch } from '../src/store/number-range.ts';

/** Ascending. Values on one line are equal. */
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

test('numbers of all types are compared exactly, and other types are below or above them', () => {
  for (const [i, left] of ASCENDING.entries())
    for (const [j, right] of ASCENDING.entries())
      for (const a of left)
        for (const b of right) {
          assert.equal(Math.sign(compareNumbers(a, b)), Math.sign(i - j), `${String(a)} and ${String(b)}`);
          assert.equal(isSameNumber(a, b), i === j && i > 0 && i < ASCENDING.length - 1);
        }
});

test('below an id are the rest of its type and then each lower type', () => {
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

test('the brackets descend in the order that compares ids', () => {
  const floors = bracketsBelow(new MaxKey(), BSON_TYPE.maxKey).map(({ floor: { value } }) =>
    typeof value === 'number' ? new Double(value) : value,
  );
  for (const [n, lower] of floors.slice(1).entries())
    assert.ok(Number(compareIds(floors[n], lower)) > 0, `${String(floors[n])} above ${String(lower)}`);
});
test('a range that is certainly empty is not read', () => {
  for (const direction of [1, -1] as const) {
    const plan = { sort: 'price', direction, range: { low: '5', high: '6' } } as const;
    assert.equal(rangesOf({ ...plan, range: { low: '5', high: '4' } }, null, false).length, 0);
    const beyond = makeBookmark({ price: direction === 1 ? 7 : 4, _id: 1 });
    assert.equal(rangesOf(plan, beyond, false).length, 0);
    assert.equal(rangesOf(plan, makeBookmark({ price: 5.5, _id: 1 }), false).length, 1);
  }
});

test('a range open on one side ends before an infinity, so that it contains finite numbers only', () => {
  const [above] = rangesOf({ sort: 'price', direction: 1, range: { low: '5' } }, null, false);
  assert.ok(above);
  assert.deepEqual(above.min, { price: 5, _id: new MinKey() });
  assert.deepEqual(above.max, { price: Infinity, _id: new MinKey() });
  const [below] = rangesOf({ sort: 'price', direction: -1, range: { high: '5' } }, null, false);
  assert.ok(below);
  assert.deepEqual(below.min, { price: -Infinity, _id: new MaxKey() });
  assert.deepEqual(below.max, { price: 5, _id: new MaxKey() });
});

/**
 * Bounds and their stretches of the index. A stretch that does not contain all its rows is marked with its filter.
 */
const STRETCHES: readonly [
  low: string | undefined,
  high: string | undefined,
  stretches: readonly string[],
][] = [
  ['5', '9.5', ['5..9.5']],
  ['0.1', undefined, ['0.1..<Infinity']], // the double is above
  ['19.99', undefined, ['19.99 (double)..19.99 (double)', '19.99..<Infinity']], // it is below
  [undefined, '19.99', ['-Infinity<..19.99']],
  ['19.99', '19.99', ['19.99 (double)..19.99 (double)', '19.99..19.99']],
  [
    '134217728.1',
    undefined,
    ['134217728.1 (double)..134217728.1 (double) doubles', '134217728.1..<Infinity'],
  ],
  [
    undefined,
    '1152921504606846976',
    [
      '-Infinity<..<1152921504606847000 (double)',
      '1152921504606847000 (double)..1152921504606847000 (double) others',
    ],
  ],
  ['1e400', undefined, ['1E+400..<Infinity']],
  ['9', '5', []],
];

test('a price range is one stretch of the index, or two where a bound is a double with other exact digits', () => {
  for (const [low, high, expected] of STRETCHES) {
    const range = { ...(low !== undefined && { low }), ...(high !== undefined && { high }) };
    assert.deepEqual(stretchesOf(range).map(written), expected, `${low} to ${high}`);
  }
});

function written({ from, to, only }: Stretch): string {
  const value = (end: End) =>
    typeof end.value === 'number' && !isShownExactly(end.value) ? `${end.value} (double)` : String(end.value);
  const [low, high] = [
    `${value(from)}${from.inclusive ? '' : '<'}`,
    `${to.inclusive ? '' : '<'}${value(to)}`,
  ];
  return `${low}..${high}${only ? ` ${only}` : ''}`;
}

function isShownExactly(double: number): boolean {
  return !Number.isFinite(double) || compareNumbers(double, Decimal128.fromString(String(double))) === 0;
}

test('a value that no command carries exactly is refused as a bookmark', () => {
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
