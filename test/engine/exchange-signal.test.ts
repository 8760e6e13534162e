import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ExchangeSignal } from '../../src/engine/exchange-signal.ts';
import { firstAbort } from '../../src/store/turns/deadline.ts';

test('the signal of an exchange ends what waits for it as any AbortSignal does', async () => {
  const signal = new ExchangeSignal();
  const reason = new Error('gone');
  signal.throwIfAborted();
  assert.equal(signal.aborted, false);
  const heard: string[] = [];
  const removed = () => heard.push('removed');
  signal.addEventListener('abort', () => heard.push('a listener'));
  signal.addEventListener('abort', removed);
  signal.removeEventListener('abort', removed);
  const either = firstAbort([new AbortController().signal], signal);
  const waiting = assert.rejects(sleep(60_000, undefined, { signal }), { name: 'AbortError', cause: reason });
  const listening = assert.rejects(once(process, 'never', { signal }), { name: 'AbortError', cause: reason });
  signal.abort(reason);
  await Promise.all([waiting, listening]);
  assert.deepEqual(heard, ['a listener']);
  assert.deepEqual([signal.aborted, signal.reason, either.reason], [true, reason, reason]);
  assert.throws(() => signal.throwIfAborted(), reason);
});
