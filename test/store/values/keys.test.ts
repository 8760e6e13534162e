import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../support/fast-check.ts';
import { BSON_RANK } from '../../../src/store/values/bson-types.ts';
import { BSON, onDemand } from '../../../src/store/values/bson.ts';
import { ABOVE_IDS, HIGHEST, LOWEST, compareKeys, joinKeys } from '../../../src/store/values/keys.ts';
import type { Key } from '../../../src/store/values/keys.ts';
import { keyOfAny } from '../../../src/store/values/order.ts';
import { anyValue, EDGES } from '../../support/store/any-value.ts';
import { ORDER } from '../../support/store/values.ts';

test('keys of every type are ordered as MongoDB orders the values', () => {
  const keys = ORDER.map(keyOf);
  keys.forEach((key, n) => {
    assert.ok(compareKeys(LOWEST, key) < 0 && compareKeys(key, HIGHEST) < 0);
    for (const [m, other] of keys.entries())
      if (Math.sign(compareKeys(key, other)) !== Math.sign(n - m))
        assert.fail(`${BSON.EJSON.stringify(ORDER[n])} and ${BSON.EJSON.stringify(ORDER[m])}`);
  });
});

test('the ranks of types, with which keys in existing files begin, are those of MongoDB and stay', () => {
  assert.deepEqual(BSON_RANK, {
    null: 5,
    number: 10,
    string: 15,
    document: 20,
    array: 25,
    binary: 30,
    objectId: 35,
    boolean: 40,
    date: 45,
    timestamp: 47,
    regularExpression: 50,
    code: 60,
    scopedCode: 65,
    maxKey: 127,
  });
});

test('joined keys are ordered by the first, then the second', () => {
  fc.assert(
    fc.property(anyValue, anyValue, anyValue, anyValue, (a, b, c, d) => {
      const first = keyOf(a);
      const second = keyOf(b);
      const third = keyOf(c);
      const fourth = keyOf(d);
      const joined = compareKeys(joinKeys(first, second), joinKeys(third, fourth));
      assert.equal(Math.sign(joined), Math.sign(compareKeys(first, third) || compareKeys(second, fourth)));
    }),
    { numRuns: 1_500 },
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

function keyOf(value: unknown): Key {
  const document = BSON.serialize({ value }, { ignoreUndefined: false });
  for (const [type, , , at, length] of onDemand.parseToElements(document))
    return keyOfAny({ type, bytes: document.subarray(at, at + length) });
  assert.fail(`${String(value)} has no key`);
}
