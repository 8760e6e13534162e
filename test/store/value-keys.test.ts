import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import { BSON, onDemand } from '../../src/store/bson.ts';
import { anyValue as value, ORDER } from '../support/any-value.ts';
import { compareKeys, joinKeys, type Key } from '../../src/store/keys.ts';
import { keyOfAny } from '../../src/store/value-keys.ts';

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

test('joined keys are ordered by the first, then the second', () => {
  fc.assert(
    fc.property(value, value, value, value, (a, b, c, d) => {
      const [first, second, third, fourth] = [keyOf(a), keyOf(b), keyOf(c), keyOf(d)];
      const joined = compareKeys(joinKeys(first, second), joinKeys(third, fourth));
      assert.equal(Math.sign(joined), Math.sign(compareKeys(first, third) || compareKeys(second, fourth)));
    }),
    { numRuns: 5_000 },
  );
});
