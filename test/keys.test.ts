import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import {
  BSON,
  Binary,
  Decimal128,
  Double,
  Int32,
  Long,
  ObjectId,
  UUID,
  onDemand,
} from '../src/store/bson.ts';
import {
  HIGHEST,
  LOWEST,
  NUMBER_KEY_BYTES,
  compareKeys,
  joinKeys,
  keyOfValue,
  numberKey,
  stringKey,
} from '../src/store/lmdb/keys.ts';
import type { Key } from '../src/store/lmdb/keys.ts';
import { compareIds } from './support/items.ts';
import type { Id } from './support/items.ts';

const long = (n: bigint) => Long.fromBigInt(n);
const uuid = (hex: string) => new UUID(Buffer.from(hex.padEnd(32, '0'), 'hex'));
const oid = (hex: string) => new ObjectId(hex.padEnd(24, '0'));

/** Values from the lowest to the highest, as MongoDB orders them; those of one line are equal. */
const ORDER: readonly (readonly Id[])[] = [
  [new Double(-Infinity)],
  [new Double(-Number.MAX_VALUE)],
  [Long.MIN_VALUE, new Double(-(2 ** 63))],
  [long(-(2n ** 63n) + 1n)],
  [long(-(2n ** 53n) - 1n)],
  [long(-(2n ** 53n)), new Double(-(2 ** 53))],
  [new Int32(-(2 ** 31)), new Double(-(2 ** 31)), long(-(2n ** 31n))],
  [new Double(-1.5)],
  [new Int32(-1), new Double(-1), long(-1n)],
  [new Double(-Number.MIN_VALUE)],
  [new Int32(0), new Double(0), new Double(-0), long(0n)],
  [new Double(Number.MIN_VALUE)],
  [new Double(0.1)],
  [new Double(0.30000000000000004)],
  [new Int32(1), new Double(1), long(1n)],
  [new Int32(2 ** 31 - 1), long(2n ** 31n - 1n)],
  [long(2n ** 53n - 1n), new Double(2 ** 53 - 1)],
  [long(2n ** 53n), new Double(2 ** 53)],
  [long(2n ** 53n + 1n)],
  [long(2n ** 53n + 2n), new Double(2 ** 53 + 2)],
  [long(2n ** 60n + 127n)],
  [long(2n ** 60n + 128n)],
  [long(2n ** 60n + 129n)],
  [long(2n ** 63n - 513n)],
  [long(2n ** 63n - 512n)],
  [Long.MAX_VALUE],
  [new Double(2 ** 63)],
  [new Double(Number.MAX_VALUE)],
  [new Double(Infinity)],
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
  ['￿'], // UTF-16 order would put this one behind the next
  ['𝄞'],
  [uuid('00')],
  [uuid('00ff')],
  [uuid('ff')],
  [oid('00')],
  [oid('0000ff')],
  [oid('ff')],
];

test('keys are ordered as MongoDB orders the values', () => {
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

test('no key begins with another one, so that joined keys are ordered by the first, then the second', () => {
  const keys = ORDER.map(([value]) => keyOf(value ?? ''));
  for (const a of keys)
    for (const b of keys) {
      assert.equal(a === b, Buffer.from(a).equals(Buffer.from(b).subarray(0, a.length)));
      const joined = compareKeys(joinKeys(a, HIGHEST), joinKeys(b, LOWEST));
      assert.equal(Math.sign(joined), a === b ? 1 : Math.sign(compareKeys(a, b)));
    }
});

const anyId: fc.Arbitrary<Id> = fc.oneof(
  fc.integer().map((n) => new Int32(n)),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => new Double(n)),
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

test('the order of any two keys is the order of their values', () => {
  fc.assert(
    fc.property(anyId, anyId, (a, b) => {
      assert.equal(Math.sign(compareKeys(keyOf(a), keyOf(b))), Math.sign(compareIds(a, b)));
    }),
    { numRuns: process.env.LONG ? 20_000 : 3_000 },
  );
});

test('a bound given as a JavaScript number, and a text, are the keys of the stored values', () => {
  for (const n of [0, -0, 1, -1, 0.1, 2 ** 53, -1e300, 123456.78]) {
    assert.deepEqual(numberKey(n), keyOf(new Double(n)));
    assert.equal(numberKey(n).length, NUMBER_KEY_BYTES);
  }
  assert.throws(() => numberKey(NaN), TypeError);
  for (const text of ['', 'a\0b', 'größe']) assert.deepEqual(stringKey(Buffer.from(text)), keyOf(text));
});

test('values of other types have no key', () => {
  const others = [null, true, new Date(0), NaN, { a: 1 }, [1], new Decimal128('1')];
  const binaries = [Buffer.alloc(16), Buffer.alloc(3)].map((bytes) => new Binary(bytes, 0));
  for (const value of [...others, ...binaries, new Binary(Buffer.alloc(15), 4)])
    assert.equal(keyIfAny(value), null, inspect(value));
});

function keyOf(value: Id): Key {
  return keyIfAny(value) ?? assert.fail(`${String(value)} has no key`);
}

function keyIfAny(value: unknown): Key | null {
  const document = BSON.serialize({ value });
  for (const [type, , , at, length] of onDemand.parseToElements(document))
    return keyOfValue({ type, bytes: document.subarray(at, at + length) });
  return null;
}
