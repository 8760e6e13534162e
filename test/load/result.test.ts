import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { LoadResult } from '../../src/load/result.ts';

const sample = JSON.parse(readFileSync(join(import.meta.dirname, 'result.json'), 'utf8')) as LoadResult;

test('the histograms of a result count what they say', () => {
  for (const { count, ticks, counts } of Object.values(sample.latencies)) {
    assert.equal(
      counts.reduce((sum, one) => sum + one, 0),
      count,
    );
    assert.equal(ticks.length, counts.length);
    assert.deepEqual(
      ticks,
      ticks.toSorted((a, b) => a - b),
    );
  }
});
