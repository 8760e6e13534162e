import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test, type TestContext } from 'node:test';
import { abortedByEither } from '../src/resources/changes/aborted-by-either.ts';
import { EMPTY } from '../src/resources/changes/pieces.ts';
import { untilStopped } from '../src/resources/changes/until-stopped.ts';
import { whenAborted } from '../src/resources/changes/when-aborted.ts';
import type { Batch } from '../src/store/batch.ts';
import { deferred } from './support/raw.ts';

const LAST: Batch = { ...EMPTY, rows: 99 };

/** A batch that tells whether it was released. */
class Held {
  isReleased = false;
  readonly batch: Batch = { ...EMPTY, release: () => void (this.isReleased = true) };
}

/** Lets what is due run to its end. */
async function settle(): Promise<void> {
  for (let n = 0; n < 5; n++) await new Promise((resolve) => setImmediate(resolve));
}

/** The state of a promise. */
async function stateOf(promise: Promise<unknown>): Promise<'pending' | 'settled'> {
  let state: 'pending' | 'settled' = 'pending';
  const settled = () => void (state = 'settled');
  void promise.then(settled, settled);
  await settle();
  return state;
}

/** A feed whose second batch comes when the test says so. Its timers are the test's. */
function hangingFeed(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const [reader, stopping, second] = [
    new AbortController(),
    new AbortController(),
    deferred<Batch | Error | null>(),
  ];
  const signals: AbortSignal[] = [];
  const feed = untilStopped(
    async function* (signal) {
      signals.push(signal);
      yield EMPTY;
      const batch = await second.promise;
      if (batch instanceof Error) throw batch;
      if (batch) yield batch;
    },
    stopping.signal,
    reader.signal,
    () => LAST,
  );
  return { feed, reader, stopping, second, read: () => signals[0] ?? assert.fail('it does not read') };
}

test('a feed that hangs ends a second after the server stops, also when it had stopped before', async (t) => {
  const { feed, stopping, second, read } = hangingFeed(t);
  assert.equal((await feed.next()).value, EMPTY);
  const next = feed.next();
  t.mock.timers.tick(1_000_000);
  stopping.abort();
  t.mock.timers.tick(999);
  assert.equal(await stateOf(next), 'pending');
  t.mock.timers.tick(1);
  assert.deepEqual(await next, { done: false, value: LAST });
  assert.ok(!read().aborted);
  assert.ok((await feed.next()).done);
  assert.match(String(read().reason), /the server stops/);
  const held = new Held();
  second.resolve(held.batch);
  await settle();
  assert.ok(held.isReleased, 'a batch that comes too late is released');

  const late = untilStopped(
    () => feedOf(new Promise<Batch>(() => undefined)),
    stopping.signal,
    new AbortController().signal,
    () => LAST,
  );
  const only = late.next();
  t.mock.timers.tick(1_000);
  assert.equal((await only).value, LAST);
  await late.return();
});

async function* feedOf(batch: Promise<Batch>): AsyncGenerator<Batch, void, undefined> {
  yield await batch;
}

test('a batch that is there when the time comes is sent, and the feed ends by itself', async (t) => {
  const { feed, stopping, second } = hangingFeed(t);
  assert.equal((await feed.next()).value, EMPTY);
  stopping.abort();
  t.mock.timers.tick(1_000);
  const held = new Held();
  second.resolve(held.batch);
  assert.equal((await feed.next()).value, held.batch);
  assert.ok(!held.isReleased, 'it belongs to the reader');
  assert.ok((await feed.next()).done);
});

test('the read of a feed is aborted with its reader, and nothing listens for a feed that is over', async (t) => {
  const { feed, reader, stopping, second, read } = hangingFeed(t);
  await feed.next();
  const reason = new Error('the reader has left');
  reader.abort(reason);
  assert.equal(read().reason, reason);
  second.resolve(reason);
  const set = t.mock.method(globalThis, 'setTimeout');
  await assert.rejects(feed.next(), reason);
  assert.equal(getEventListeners(reader.signal, 'abort').length, 0);
  stopping.abort();
  assert.equal(set.mock.callCount(), 0, 'the server stops without it');
});

test('a feed whose reader has left before reads with an aborted signal', async () => {
  const reader = AbortSignal.abort(new Error('gone'));
  const feed = untilStopped(
    async function* (signal) {
      signal.throwIfAborted();
      yield await Promise.resolve(EMPTY);
    },
    new AbortController().signal,
    reader,
    () => LAST,
  );
  await assert.rejects(feed.next(), /gone/);
});

test('work ends with null when the server stops, and with the reason of its reader otherwise', async () => {
  const work = (signal: AbortSignal) =>
    new Promise<string>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  const [reader, stopping] = [new AbortController(), new AbortController()];
  const stopped = abortedByEither(reader.signal, stopping.signal, work);
  stopping.abort();
  assert.equal(await stopped, null);
  assert.equal(getEventListeners(reader.signal, 'abort').length, 0);
  assert.equal(await abortedByEither(reader.signal, stopping.signal, () => assert.fail('it began')), null);

  const server = new AbortController().signal;
  const left = abortedByEither(reader.signal, server, work);
  reader.abort(new Error('the reader has left'));
  await assert.rejects(left, /the reader has left/);
  await assert.rejects(
    abortedByEither(reader.signal, null, () => assert.fail('it began')),
    /left/,
  );
});

test('work that fails by itself fails, and its result is that of both signals', async () => {
  const { signal } = new AbortController();
  const server = new AbortController();
  const signals: AbortSignal[] = [];
  for (const stopping of [null, server.signal]) {
    const done = abortedByEither(signal, stopping, (either) => {
      signals.push(either);
      return Promise.resolve('done');
    });
    assert.equal(await done, 'done');
    const failing = abortedByEither(signal, stopping, () => Promise.reject(new Error('broken')));
    await assert.rejects(failing, /broken/);
  }
  server.abort();
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [false, false],
    'nothing aborts what is over',
  );
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('a signal that thousands wait for has one listener, and forgets who waits no more', () => {
  const stopping = new AbortController();
  const called: number[] = [];
  const forget = Array.from({ length: 1_000 }, (_, n) => whenAborted(stopping.signal, () => called.push(n)));
  assert.equal(getEventListeners(stopping.signal, 'abort').length, 1);
  for (const one of forget.slice(2)) one();
  stopping.abort();
  assert.deepEqual(called, [0, 1]);
});
