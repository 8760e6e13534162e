import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstAbort } from '../../../src/store/turns/deadline.ts';

test('the first of many signals aborts, without a warning, and none is listened to in the end', async (t) => {
  const warnings: Error[] = [];
  const warn = (warning: Error) => void warnings.push(warning);
  process.on('warning', warn);
  t.after(() => process.off('warning', warn));
  const many = Array.from({ length: 16 }, () => new AbortController());
  const one = new AbortController();
  const until = new AbortController();
  const signals = many.map(({ signal }) => signal);
  const first = firstAbort(signals, one.signal);
  const other = firstAbort(signals, until.signal);
  until.abort(new Error('over'));
  many[9]?.abort(new Error('the ninth'));
  assert.deepEqual([first.reason, other.reason].map(String), ['Error: the ninth', 'Error: over']);
  assert.equal(
    String(firstAbort(signals, one.signal).reason),
    'Error: the ninth',
    'also one that is aborted',
  );
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warnings, []);
});
