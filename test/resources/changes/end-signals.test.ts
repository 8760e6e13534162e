import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test, type TestContext } from 'node:test';
import { feedAnswer, oneSet } from '../../../src/resources/changes/answer.ts';
import { endSignals } from '../../../src/resources/changes/end-signals.ts';
import { firstAbort } from '../../../src/store/deadline.ts';
import type { Start } from '../../../src/resources/changes/follow.ts';
import { createTranscoder } from '../../../src/rows/transcoder.ts';
import { Slots } from '../../../src/store/slots.ts';
import type { FeedReader } from '../../../src/store/tail.ts';

const PLACE = { token: Uint8Array.of(1) };

/** Rejects with the reason of a signal when it aborts. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });
}

/** The lines of an answer whose reader waits for changes, or whose first read of rows hangs. */
function hangingAnswer(t: TestContext, hangs: 'wait' | 'walk') {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const [reader, stopping] = [new AbortController(), new AbortController()];
  const changes: FeedReader = {
    read: (_place, _size, _identity, signal) => aborted(signal),
    rows: () => assert.fail('no key has changed'),
    reaches: () => assert.fail('no one rests'),
  };
  const slots = new Slots();
  const start: Start =
    hangs === 'walk'
      ? { place: PLACE, walk: null }
      : { place: PLACE, walk: 'over', first: { keys: [], next: PLACE, isUpToDate: true } };
  const answer = feedAnswer(createTranscoder(slots).encoder('lines'), start, {
    followed: oneSet({
      collection: 'items',
      plan: { sort: '_id', direction: 1 },
      rows: { read: (_plan, _from, _size, signal) => aborted(signal) },
      changes,
    }),
    end: { opens: false, follows: true, waitMs: 0, limit: Infinity },
    now: () => 0,
    stopping: stopping.signal,
    heartbeatMs: 15_000,
  });
  const text = async () => {
    let lines = '';
    for await (const batch of answer.batches(reader.signal))
      for (const chunk of answer.encoder.encode(batch, 1_024)) lines += Buffer.from(chunk).toString();
    return (lines + answer.encoder.end())
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(0, 6));
  };
  const lines = text().then((starts) => ({ starts, end: answer.encoder.end() }));
  lines.catch(() => undefined); // awaited later
  return { lines, reader, stopping };
}

/** Lets what is due run to its end. */
async function settle(): Promise<void> {
  for (let n = 0; n < 5; n++) await new Promise((resolve) => setImmediate(resolve));
}

test('a feed whose read hangs ends a second after the server stops, and is not up to date', async (t) => {
  const { lines, stopping } = hangingAnswer(t, 'walk');
  await settle();
  stopping.abort();
  await settle();
  t.mock.timers.tick(1_000);
  const { starts, end } = await lines;
  assert.deepEqual(starts, ['{"chec', '{"end"']);
  assert.match(end, /"upToDate":false.*"more":true/);
});

test('a feed rejects with the reason of its reader, whatever the server does', async (t) => {
  const { lines, reader, stopping } = hangingAnswer(t, 'wait');
  await settle();
  reader.abort(new Error('the reader has left'));
  stopping.abort();
  await assert.rejects(lines, /the reader has left/);
  for (const { signal } of [reader, stopping])
    assert.equal(getEventListeners(signal, 'abort').length, 0, 'nothing listens for a feed that is over');
});

test('reads that wait end when the server stops, others a second later, and all with the reader', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const [reader, stopping] = [new AbortController(), new AbortController()];
  const { reads, waits } = endSignals(reader.signal, stopping.signal);
  stopping.abort(new Error('stops'));
  assert.deepEqual([reads.aborted, waits.aborted], [false, true]);
  t.mock.timers.tick(999);
  assert.equal(reads.aborted, false);
  t.mock.timers.tick(1);
  assert.match(String(reads.reason), /stops/);

  const late = endSignals(reader.signal, stopping.signal);
  assert.deepEqual([late.reads.aborted, late.waits.aborted], [false, true], 'the server stopped before');
  late.close();
  t.mock.timers.tick(1_000);
  assert.equal(late.reads.aborted, false, 'a feed that is over has no timer');

  const left = endSignals(AbortSignal.abort(new Error('gone')), new AbortController().signal);
  for (const signal of [left.reads, left.waits]) assert.match(String(signal.reason), /gone/);
});

test('the first of many signals aborts, without a warning, and none is listened to in the end', async (t) => {
  const warnings: Error[] = [];
  const warn = (warning: Error) => void warnings.push(warning);
  process.on('warning', warn);
  t.after(() => process.off('warning', warn));
  const many = Array.from({ length: 16 }, () => new AbortController());
  const [one, until] = [new AbortController(), new AbortController()];
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
