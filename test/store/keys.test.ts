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
import { compareIds } from '../support/store/items.ts';
import type { Id } from '../support/store/items.ts';
import { nearPrice } from '../support/store/prices.ts';

const long = (n: bigint) => Long.fromBigInt(n);
const decimal = (digits: string) => Decimal128.fromString(digits);
const uuid = (hex: string) => new UUID(Buffer.from(hex.padEnd(32, '0'), 'hex'));
const oid = (hex: string) => new ObjectId(hex.padEnd(24, '0'));

/** Values in MongoDB's ascending order. Values on one line are equal. */
const ORDER: readonly (readonly (Id | Decimal128)[])[] = [
  [new Double(NaN), decimal('NaN')],
  [new Double(-Infinity), decimal('-Infinity')],
  [decimal('-9.999999999999999999999999999999999E+6144')],
  [decimal('-1E+6000')],
  [new Double(-Number.MAX_VALUE)],
  [decimal('-9223372036854775808.5')],
  [Long.MIN_VALUE, new Double(-(2 ** 63))],
  [long(-(2n ** 63n) + 1n)],
  [decimal('-9007199254740993.5')],
  [long(-(2n ** 53n) - 1n), decimal('-9007199254740993')],
  [decimal('-9007199254740992.5')],
  [long(-(2n ** 53n)), new Double(-(2 ** 53))],
  [new Int32(-(2 ** 31)), new Double(-(2 ** 31)), long(-(2n ** 31n))],
  [decimal('-1.500000000000000000000000000000001')],
  [new Double(-1.5), decimal('-1.50')],
  [decimal('-1.499999999999999999999999999999999')],
  [new Int32(-1), new Double(-1), long(-1n)],
  [new Double(-Number.MIN_VALUE)],
  [decimal('-1E-6000')],
  [decimal('-1E-6176')],
  [new Int32(0), new Double(0), new Double(-0), long(0n), decimal('-0'), decimal('0E+100')],
  [decimal('1E-6176')],
  [decimal('1E-6000'), decimal('10E-6001')],
  [decimal('1.1E-6000')],
  [new Double(Number.MIN_VALUE)],
  [decimal('0.1')],
  [decimal('0.1000000000000000055511151231257827')], // as many digits of the double as a decimal can have
  [new Double(0.1)],
  [decimal('0.1000000000000000055511151231257828')],
  [new Double(0.30000000000000004)],
  [decimal('0.9999999999999999999999999999999999')],
  [new Int32(1), new Double(1), long(1n), decimal('1.000')],
  [decimal('1.000000000000000000000000000000001')],
  [new Int32(2 ** 31 - 1), long(2n ** 31n - 1n)],
  [long(2n ** 53n - 1n), new Double(2 ** 53 - 1)],
  [decimal('9007199254740991.5')],
  [long(2n ** 53n), new Double(2 ** 53)],
  [decimal('9007199254740992.5')],
  [long(2n ** 53n + 1n), decimal('9007199254740993')],
  [decimal('9007199254740993.00001')],
  [long(2n ** 53n + 2n), new Double(2 ** 53 + 2)],
  [long(2n ** 60n + 127n)],
  [long(2n ** 60n + 128n)],
  [long(2n ** 60n + 129n)],
  [long(2n ** 63n - 513n)],
  [long(2n ** 63n - 512n)],
  [Long.MAX_VALUE],
  [decimal('9223372036854775807.5')],
  [new Double(2 ** 63), decimal('9223372036854775808')],
  [decimal('9223372036854775809')],
  [new Double(Number.MAX_VALUE)],
  [decimal('1E+309')],
  [decimal('1E+6000'), decimal('10E+5999')],
  [new Double(Infinity), decimal('Infinity')],
  [''],
  ['\0'],
  ['\0\0'],
  ['\0\u0001'],
  ['\u0001'],
  ['A'],
  ['a'],
  ['a\0'],
  ['a\0\0'],
  ['a\0b'],
  ['a\u0001'],
  ['aa'],
  ['b'],
  ['é'],
  ['￿'], // in UTF-16 order this one would come after the next
  ['𝄞'],
  [uuid('00')],
  [uuid('00ff')],
  [uuid('ff')],
  [oid('00')],
  [oid('0000ff')],
  [oid('ff')],
];

test('keys have the order in which MongoDB sorts the values', () => {
  const keys = ORDER.map((equal) => equal.map(keyOf));
  keys.forEach((equal, line) => {
    for (const key of equal) {
      assert.equal(compareKeys(key, equal[0] ?? key), 0, `line ${line} is one value`);
      assert.ok(compareKeys(LOWEST, key) < 0 && compareKeys(key, HIGHEST) < 0);
      for (const higher of keys.slice(line + 1))
        assert.ok(compareKeys(key, higher[0] ?? LOWEST) < 0, `line ${line} is below the next`);
    }
  });
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
  const numbers = ORDER.map(([value]) => keyOf(value ?? '')).filter((key) => key[0] === 10);
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
      assert.equal(Math.sign(compareKeys(keyOf(a), keyOf(b))), Math.sign(compareIds(a, b)));
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
