import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentMap } from '../../src/base/recent-map.ts';

test('a map of recent entries drops the older of two generations when the newer is full', () => {
  const map = new RecentMap<number>(2);
  for (const n of [1, 2, 3, 4, 5]) map.set(`${n}`, n);
  assert.deepEqual(
    ['1', '2', '3', '4', '5'].map((key) => map.get(key)),
    [undefined, undefined, 3, 4, 5],
  );
});
