import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KEY } from '../../../../src/store/bookmark.ts';
import { BSON } from '../../../../src/store/values/bson.ts';
import { compareKeys, joinKeys, type Key } from '../../../../src/store/values/keys.ts';
import { keyOfValue } from '../../../../src/store/values/order.ts';
import { keyRow } from '../../../../src/store/sqlite/file/keyed.ts';
import { anyId, anyValue, EDGES } from '../../../support/store/any-value.ts';
import fc from '../../../support/fast-check.ts';

const PATHS = [['a'], ['b', 'a'], ['a', 'c.d', 'b'], [KEY, 'b']];
const INDEXES = PATHS.map((paths, number) => ({ number, paths, builtTo: null }));

/** The value at a path through documents; an array on the way itself. */
function valueIn(row: unknown, path: string): unknown {
  let value = row;
  for (const name of path.split('.')) {
    if (Array.isArray(value)) return value;
    value = (value as Readonly<Record<string, unknown>> | null | undefined)?.[name];
  }
  return value;
}

test('the entries of a row are the joined keys of its values and its id, for values of all types and lengths', () => {
  const long = fc.constantFrom('x'.repeat(200_000), 'nul\0in it', 'é'.repeat(40_000));
  const rare = fc.constantFrom<unknown>(undefined, -0, 0, NaN, -1.5, -Infinity);
  const one = fc.oneof(anyValue, fc.constantFrom(...EDGES), rare, long);
  const anyRow = fc.record({ [KEY]: anyId, a: one, b: one, c: fc.record({ d: one }) });
  const kept: [Key, string][] = [];
  fc.assert(
    fc.property(anyRow, (row) => {
      const keyed = keyRow(BSON.serialize(row, { ignoreUndefined: true }), INDEXES);
      if (typeof keyed === 'string') return assert.fail(keyed);
      const key = keyOfValue(row[KEY]);
      assert.equal(compareKeys(keyed.key, key), 0, 'the key');
      for (const [at, paths] of PATHS.entries()) {
        const values = paths.map((path) => valueIn(row, path));
        const array = paths.find((_, n) => Array.isArray(values[n]));
        const entry: Key | null = keyed.entries[at] ?? null;
        const { reason } = keyed.unusable.find(({ index }) => index === at) ?? {};
        assert.equal(entry === null, array !== undefined, `an entry of ${paths.join()}`);
        if (array !== undefined) assert.match(reason ?? '', new RegExp(`array at ${array} `));
        else
          assert.equal(compareKeys(entry ?? key, joinKeys(...values.map(keyOfValue), key)), 0, paths.join());
      }
      for (const one of [keyed.key, ...keyed.entries])
        if (one && one.length < 1_000) kept.push([one, Buffer.from(one).toString('hex')]);
    }),
    { numRuns: 500 },
  );
  assert.ok(kept.length > 1_000);
  for (const [key, hex] of kept)
    assert.equal(Buffer.from(key).toString('hex'), hex, 'later rows leave it as it is');
});
