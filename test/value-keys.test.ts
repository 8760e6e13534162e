import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from './support/fast-check.ts';
import {
  BSON,
  BSONRegExp,
  Binary,
  Code,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
  onDemand,
} from '../src/store/bson.ts';
import { compareKeys, joinKeys, type Key } from '../src/store/lmdb/keys.ts';
import { lowerBound, upperBound } from '../src/store/lmdb/rows/longest-key.ts';
import { endOfKey, keyOfAny } from '../src/store/lmdb/value-keys.ts';

function keyOf(value: unknown): Key {
  const bytes = BSON.serialize({ v: value }, { ignoreUndefined: false });
  const [[type, , , at, length]] = [...onDemand.parseToElements(bytes)] as [
    [number, number, number, number, number],
  ];
  return keyOfAny({ type, bytes: bytes.subarray(at, at + length) });
}

/** Values from the lowest to the highest, as mongod orders them (`bsonWoCompare`). */
const ORDER: readonly unknown[] = [
  new MinKey(),
  null,
  new Double(NaN),
  new Int32(-5),
  Decimal128.fromString('0.1'),
  new Double(0.1),
  new Int32(1),
  Decimal128.fromString('1.5000000000000000000001'),
  '',
  'a',
  'a\0',
  'b',
  {},
  { a: null },
  { a: new Int32(1) },
  { a: new Int32(1), b: new Int32(0) },
  { a: Decimal128.fromString('1.5000000000000000000001') },
  { a: new Int32(2) },
  { b: new Int32(0) }, // the types are equal, so the names decide
  { a: 'x' },
  { a: {} },
  [],
  [null],
  [new Int32(1)],
  [new Int32(1), new Int32(1)],
  [new Int32(2)],
  new Binary(new Uint8Array(0), 0),
  new Binary(Uint8Array.of(255), 0),
  new Binary(Uint8Array.of(0), 5),
  new Binary(Uint8Array.of(0, 0), 0),
  new Binary(new Uint8Array(16).fill(1), 0),
  new Binary(new Uint8Array(16), 4),
  new Binary(new Uint8Array(17), 0),
  new ObjectId('000000000000000000000000'),
  new ObjectId('ffffffffffffffffffffffff'),
  false,
  true,
  new Date(-1),
  new Date(0),
  new Date(1),
  new Timestamp({ t: 0, i: 1 }),
  new Timestamp({ t: 1, i: 0 }),
  new Timestamp({ t: 4_000_000_000, i: 0 }),
  new BSONRegExp('a', ''),
  new BSONRegExp('a', 'i'),
  new BSONRegExp('b', ''),
  new Code('a'),
  new Code('b'),
  new Code('a', { x: new Int32(1) }),
  new Code('a', { x: new Int32(2) }),
  new MaxKey(),
];

test('keys of every type are ordered as MongoDB orders the values', () => {
  const keys = ORDER.map(keyOf);
  keys.forEach((key, n) => {
    for (const [m, other] of keys.entries())
      assert.equal(
        Math.sign(compareKeys(key, other)),
        Math.sign(n - m),
        `${BSON.EJSON.stringify(ORDER[n])} and ${BSON.EJSON.stringify(ORDER[m])}`,
      );
  });
});

const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(...ORDER),
    fc.integer().map((n) => new Int32(n | 0)),
    fc.double().map((n) => new Double(n)),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((n) => Long.fromBigInt(n)),
    fc.string({ unit: 'binary', maxLength: 8 }),
    fc.uint8Array({ maxLength: 20 }).map((bytes) => new Binary(bytes, bytes.length % 5)),
    fc.date({ noInvalidDate: true }),
    fc.boolean(),
    fc.dictionary(
      fc.string({ maxLength: 3 }).map((name) => name.replaceAll('\0', '')),
      tie('value'),
      { maxKeys: 3 },
    ),
    fc.array(tie('value'), { maxLength: 3 }),
  ),
})).value;

test('joined keys are ordered by the first, then the second, and each ends where the next begins', () => {
  fc.assert(
    fc.property(value, value, value, value, (a, b, c, d) => {
      const [first, second, third, fourth] = [keyOf(a), keyOf(b), keyOf(c), keyOf(d)];
      const joined = compareKeys(joinKeys(first, second), joinKeys(third, fourth));
      assert.equal(Math.sign(joined), Math.sign(compareKeys(first, third) || compareKeys(second, fourth)));
      assert.equal(endOfKey(joinKeys(first, second), 0), first.length);
      assert.equal(endOfKey(joinKeys(first, second), first.length), first.length + second.length);
    }),
    { numRuns: 5_000 },
  );
});

test('bounds that are longer than any key part the keys as before', () => {
  const most = 3;
  const bytes = [0, 1, 0xfe, 0xff];
  const keysOf = (length: number): Key[] =>
    length === 0
      ? [new Uint8Array(0)]
      : keysOf(length - 1).flatMap((key) => bytes.map((byte) => joinKeys(key, Uint8Array.of(byte))));
  const keys = [1, 2, 3].flatMap(keysOf);
  const longer = [1, 2, 3, 4, 5].flatMap(keysOf).filter((key) => key[0] !== 0xff); // keys begin with a number below that
  for (const bound of longer) {
    const [low, high] = [lowerBound(bound, most), upperBound(bound, most)];
    assert.ok(low.length <= most && high.length <= most);
    for (const key of keys) {
      if (compareKeys(key, bound) === 0) continue;
      assert.equal(
        compareKeys(key, low) > 0,
        compareKeys(key, bound) > 0,
        `${String(key)} above ${String(bound)}`,
      );
      assert.equal(
        compareKeys(key, high) < 0,
        compareKeys(key, bound) < 0,
        `${String(key)} below ${String(bound)}`,
      );
    }
  }
});
