import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ExchangeSignal } from '../../src/engine/exchange-signal.ts';
import { firstAbort } from '../../src/store/turns/deadline.ts';
import { interruption } from '../../src/terminal/interruption.ts';

test('Signals that a request or a command shares warn of no leak when a hundred reads listen', async () => {
  const warnings: Error[] = [];
  const hear = (warning: Error) => warnings.push(warning);
  process.on('warning', hear);
  const signals: readonly AbortSignal[] = [
    new ExchangeSignal(),
    interruption(),
    firstAbort([new ExchangeSignal()], new AbortController().signal),
  ];
  for (const signal of signals)
    for (let n = 0; n < 100; n++) signal.addEventListener('abort', () => undefined);
  const control = new EventTarget(); // since Node 24 a signal has no limit by itself
  for (let n = 0; n < 11; n++) control.addEventListener('abort', () => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', hear);
  assert.deepEqual(
    warnings.map((warning) => 'target' in warning && warning.target === control),
    [true],
  );
});
