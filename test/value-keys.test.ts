import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from './support/fast-check.ts';
import { BSON, onDemand } from '../src/store/bson.ts';
import { anyValue as value, ORDER } from './support/any-value.ts';
import { compareKeys, joinKeys, type Key } from '../src/store/keys.ts';
import { lowerBound, upperBound } from '../src/store/lmdb/rows/longest-key.ts';
import { endOfKey, keyOfAny } from '../src/store/value-keys.ts';

function keyOf(value: unknown): Key {
  const bytes = BSON.serialize({ v: value }, { ignoreUndefined: false });
  const [[type, , , at, length]] = [...onDemand.parseToElements(bytes)] as [
    [number, number, number, number, number],
  ];
  return keyOfAny({ type, bytes: bytes.subarray(at, at + length) });
}

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
