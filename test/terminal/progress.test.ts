import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startProgress } from '../../src/terminal/progress.ts';
import { Kept } from '../support/pull/pulling.ts';

test('without a terminal, progress is a line every ten seconds with the share and the time that is left', () => {
  const stderr = new Kept();
  let now = 0;
  const progress = startProgress({ stderr, isTTY: false }, 1_000, { from: 100, now: () => now });
  for (const [seconds, at] of [
    [5, 200],
    [10, 300],
    [19, 500],
    [20, 550],
    [60, 1_001],
  ] as const) {
    now = seconds * 1_000;
    progress.update(at, `${at} rows`);
  }
  progress.line('a line');
  progress.stop();
  assert.equal(
    String(stderr.bytes),
    '30 %, 300 rows, about 35 s left\n55 %, 550 rows, about 20 s left\n100 %, 1001 rows, about 0.0 s left\na line\n',
  );
});
