import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LatencyHistogram } from '../../src/load/histogram.ts';

const HUNDRED = Array.from({ length: 100 }, (_, i) => i + 1);

test('quantiles are those of the nearest rank', () => {
  const histogram = new LatencyHistogram();
  for (const ms of HUNDRED.toReversed()) histogram.record(ms);
  assert.deepEqual(histogram.quantiles(), { p50: 50, p90: 90, p99: 99, p999: 100, max: 100 });
  const { count, mean, ticks, counts } = histogram.latencies();
  assert.deepEqual([count, mean, counts], [100, 50.5, HUNDRED.map(() => 1)]);
  assert.deepEqual(
    ticks,
    HUNDRED.map((ms) => ms * 10),
    'units of 0.1 ms',
  );
});

test('the histogram distinguishes latencies to a tick, or to a thousandth, up to an hour', () => {
  const maxOf = (ms: number, ticksPerMs?: number) => {
    const histogram = new LatencyHistogram(ticksPerMs);
    histogram.record(ms);
    return histogram.quantiles().max ?? NaN;
  };
  assert.equal(maxOf(0.26), 0.3);
  assert.equal(maxOf(0.26, 100), 0.26);
  assert.equal(maxOf(0), 0.1);
  for (const ms of [17.3, 1234.5, 98_765, 3_599_999, 9_999_999])
    for (const ticksPerMs of [10, 100]) {
      const exact = Math.min(ms, 3_600_000);
      assert.ok(
        Math.abs(maxOf(ms, ticksPerMs) - exact) <= exact / 1000 + 0.05,
        `${ms} in ${ticksPerMs} ticks`,
      );
    }
});

test('histograms are added up and emptied', () => {
  const all = new LatencyHistogram();
  const one = new LatencyHistogram();
  assert.equal(all.quantiles().p50, null);
  one.record(3);
  all.record(1);
  all.add(one);
  assert.deepEqual([all.count, all.quantiles().max], [2, 3]);
  all.reset();
  assert.deepEqual([all.count, all.latencies().mean, all.quantiles().max], [0, null, null]);
  all.add(new LatencyHistogram());
  assert.equal(all.count, 0);
});
