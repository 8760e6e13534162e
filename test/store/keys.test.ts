import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import { BSON, Decimal128, Double, Int32, Long, ObjectId, UUID, onDemand } from '../../src/store/bson.ts';
import {
  ABOVE_IDS,
  HIGHEST,
  LOWEST,
  NUMBER_KEY_BYTES,
  compareKeys,
  joinKeys,
  numberKey,
  stringKey,
} from '../../src/store/keys.ts';
import type { Key } from '../../src/store/keys.ts';
import { keyOfAny } from '../../src/store/value-keys.ts';
import { anyValue, ORDER as ANY_ORDER } from '../support/store/any-value.ts';
import { compareBson } from '../support/store/bson-order.ts';
import { compareValues } from '../../src/store/order.ts';
import type { Id } from '../support/store/items.ts';
import { nearPrice } from '../support/store/prices.ts';

const long = (n: bigint) => Long.fromBigInt(n);
const decimal = (digits: string) => Decimal128.fromString(digits);
const uuid = (hex: string) => new UUID(Buffer.from(hex.padEnd(32, '0'), 'hex'));
const oid = (hex: string) => new ObjectId(hex.padEnd(24, '0'));

/** Numbers at which types meet or differ, texts of which some begin like others, and ids. */
const EDGES: readonly unknown[] = [
  ...(
    'NaN -Infinity -9.999999999999999999999999999999999E+6144 -1E+6000 -9223372036854775808.5 -9007199254740993.5 ' +
    '-9007199254740993 -9007199254740992.5 -1.500000000000000000000000000000001 -1.50 ' +
    '-1.499999999999999999999999999999999 -1E-6000 -1E-6176 -0 0E+100 1E-6176 1E-6000 10E-6001 1.1E-6000 0.1 ' +
    // as many digits of the double 0.1 as a decimal can have, and the next decimal
    '0.1000000000000000055511151231257827 0.1000000000000000055511151231257828 ' +
    '0.9999999999999999999999999999999999 1.000 1.000000000000000000000000000000001 9007199254740991.5 ' +
    '9007199254740992.5 9007199254740993 9007199254740993.00001 9223372036854775807.5 9223372036854775808 ' +
    '9223372036854775809 1E+309 1E+6000 10E+5999 Infinity'
  )
    .split(' ')
    .map(decimal),
  ...[0, 0.1, 0.30000000000000004, 1, 1.5, 2 ** 31, 2 ** 53 - 1, 2 ** 53, 2 ** 53 + 2, 2 ** 63, Infinity]
    .concat([Number.MIN_VALUE, Number.MAX_VALUE])
    .flatMap((n) => [new Double(n), new Double(-n)]),
  new Double(NaN),
  ...[-(2 ** 31), -1, 0, 1, 2 ** 31 - 1].map((n) => new Int32(n)),
  ...[0n, 1n, 2n ** 31n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 53n + 2n].flatMap((n) => [long(n), long(-n)]),
  ...[2n ** 60n + 127n, 2n ** 60n + 128n, 2n ** 60n + 129n, 2n ** 63n - 513n, 2n ** 63n - 512n].map(long),
  ...[Long.MIN_VALUE, Long.MIN_VALUE.add(1), Long.MAX_VALUE],
  // In UTF-16 order the last but one would come behind the last.
  ...['', '\0', '\0\0', '\0\u0001', '\u0001', 'A', 'a', 'a\0', 'a\0\0', 'a\0b', 'a\u0001', 'aa', 'b', 'é'],
  ...['\uffff', '𝄞'],
  ...['00', '00ff', 'ff'].map(uuid),
  ...['00', '0000ff', 'ff'].map(oid),
];

test('values and their keys have the order in which MongoDB sorts the values', () => {
  const keys = EDGES.map(keyOf);
  for (const [n, key] of keys.entries()) {
    assert.ok(compareKeys(LOWEST, key) < 0 && compareKeys(key, HIGHEST) < 0);
    for (const [m, other] of keys.entries()) {
      const expected = Math.sign(compareBson(EDGES[n], EDGES[m]));
      const found = [compareKeys(key, other), compareValues(EDGES[n], EDGES[m])].map(Math.sign);
      assert.deepEqual(found, [expected, expected], `${String(EDGES[n])} and ${String(EDGES[m])}`);
    }
  }
});

test('keys of every type are ordered as MongoDB orders the values', () => {
  const keys = ANY_ORDER.map(keyOf);
  keys.forEach((key, n) => {
    for (const [m, other] of keys.entries())
      assert.equal(
        Math.sign(compareKeys(key, other)),
        Math.sign(n - m),
        `${BSON.EJSON.stringify(ANY_ORDER[n])} and ${BSON.EJSON.stringify(ANY_ORDER[m])}`,
      );
  });
});

test('joined keys are ordered by the first, then the second', () => {
  fc.assert(
    fc.property(anyValue, anyValue, anyValue, anyValue, (a, b, c, d) => {
      const [first, second, third, fourth] = [keyOf(a), keyOf(b), keyOf(c), keyOf(d)];
      const joined = compareKeys(joinKeys(first, second), joinKeys(third, fourth));
      assert.equal(Math.sign(joined), Math.sign(compareKeys(first, third) || compareKeys(second, fourth)));
    }),
    { numRuns: 5_000 },
  );
});

test('an upper bound for a number is above all keys that are joined to that number, and below any higher number', () => {
  const numbers = EDGES.map(keyOf)
    .filter((key) => key[0] === 10)
    .sort(compareKeys)
    .filter((key, n, all) => n === 0 || compareKeys(all[n - 1] ?? LOWEST, key) < 0);
  for (const [n, key] of numbers.entries()) {
    const above = joinKeys(key, ABOVE_IDS);
    assert.ok(compareKeys(joinKeys(key, ABOVE_RANKS), above) < 0);
    for (const higher of numbers.slice(n + 1)) assert.ok(compareKeys(above, higher) < 0);
  }
});

/** The rank of MaxKey. No type is above it. */
const ABOVE_RANKS = Uint8Array.of(127, 255);

const anyId: fc.Arbitrary<Id | Decimal128> = fc.oneof(
  fc.integer().map((n) => new Int32(n)),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => new Double(n)),
  nearPrice(),
  fc
    .tuple(fc.bigInt({ min: -(10n ** 34n) + 1n, max: 10n ** 34n - 1n }), fc.integer({ min: -60, max: 60 }))
    .map(([digits, place]) => decimal(`${digits}E${place}`)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(long),
  fc
    .tuple(fc.integer({ min: 50, max: 62 }), fc.bigInt({ min: -2000n, max: 2000n }), fc.constantFrom(1n, -1n))
    .map(([power, near, sign]) => long(sign * 2n ** BigInt(power) + near)),
  fc
    .tuple(fc.integer({ min: 50, max: 70 }), fc.constantFrom(1, -1))
    .map(([power, sign]) => new Double(sign * 2 ** power)),
  fc.string({ unit: fc.constantFrom('\0', '\u0001', 'a', 'b', 'é', '￿', '𝄞'), maxLength: 5 }),
  fc.string({ unit: 'binary' }),
  fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => new UUID(bytes)),
  fc.uint8Array({ minLength: 12, maxLength: 12 }).map((bytes) => new ObjectId(bytes)),
);

test('any two keys have the order of their values', () => {
  fc.assert(
    fc.property(anyId, anyId, (a, b) => {
      assert.equal(Math.sign(compareKeys(keyOf(a), keyOf(b))), Math.sign(compareBson(a, b)));
    }),
    { numRuns: process.env.LONG ? 20_000 : 3_000 },
  );
});

test('bounds given as JavaScript numbers and strings have the keys of the stored values', () => {
  for (const n of [0, -0, 1, -1, 0.1, 2 ** 53, -1e300, 123456.78]) {
    assert.deepEqual(numberKey(n), keyOf(new Double(n)));
    assert.equal(numberKey(n).length, NUMBER_KEY_BYTES);
  }
  for (const text of ['', 'a\0b', 'größe']) assert.deepEqual(stringKey(Buffer.from(text)), keyOf(text));
});

function keyOf(value: unknown): Key {
  const document = BSON.serialize({ value }, { ignoreUndefined: false });
  for (const [type, , , at, length] of onDemand.parseToElements(document))
    return keyOfAny({ type, bytes: document.subarray(at, at + length) });
  assert.fail(`${String(value)} has no key`);
}
