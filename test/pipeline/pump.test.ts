import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RowEncoder } from '../../src/rows/rows.ts';
import type { Batch } from '../../src/store/batch.ts';
import { pump } from '../../src/pipeline/pump.ts';
import type { Sink } from '../../src/pipeline/sink.ts';

/** A batch of one row that reports its release. */
function fakeBatch(released: string[], name: string): Batch {
  return {
    slot: null as never,
    start: 0,
    length: 0,
    rows: 1,
    last: null,
    more: false,
    release: () => void released.push(name),
  };
}

function fakeEncoder(closed: { count: number }): RowEncoder {
  return {
    cut: () => assert.fail('these rows cannot be read again'),
    *encode() {
      yield Buffer.from('a');
      yield Buffer.from('b');
    },
    close: () => {
      closed.count++;
    },
  };
}

/** A sink that takes one chunk and is then full until `drain`. */
function slowSink() {
  const taken: string[] = [];
  let wake: (() => void) | null = null;
  let onFull: (() => void) | null = null;
  const sink: Sink = {
    chunkBytes: 10,
    signal: new AbortController().signal,
    write(chunk) {
      taken.push(Buffer.from(chunk).toString());
      onFull?.();
      return new Promise((resolve) => (wake = resolve));
    },
    flush: () => undefined,
    end: () => assert.fail('the pump does not end the sink'),
    fail: () => assert.fail('the pump does not fail the sink'),
  };
  return {
    sink,
    taken,
    drain: () => wake?.(),
    full: () => new Promise<void>((resolve) => (onFull = resolve)),
  };
}

async function* batches(...list: Batch[]): AsyncGenerator<Batch> {
  yield* list;
  await Promise.resolve();
}

test('the pump writes head, rows and tail, one chunk at a time, at the pace of the sink', async () => {
  const released: string[] = [];
  const closed = { count: 0 };
  const { sink, taken, drain, full } = slowSink();
  const first = batches(fakeBatch(released, 'one'), fakeBatch(released, 'two'));
  let written = full();
  const done = pump({ first }, fakeEncoder(closed), { head: '[', tail: () => ']' }, sink);
  for (const expected of ['[', '[a', '[ab', '[aba', '[abab', '[abab]']) {
    await written;
    assert.equal(taken.join(''), expected, 'nothing is written to a full sink');
    written = full();
    drain();
  }
  assert.equal(await done, 2);
  assert.deepEqual(released, ['one', 'two']);
  assert.equal(closed.count, 1);
});

test('a stream whose reader takes everything at once yields to others within a batch', async () => {
  const chunk = Buffer.alloc(16 * 1024);
  let written = 0;
  const sink: Sink = {
    ...slowSink().sink,
    write: (bytes) => void (written += bytes.length),
  };
  const encoder: RowEncoder = {
    ...fakeEncoder({ count: 0 }),
    *encode() {
      for (let n = 0; n < 64; n++) yield chunk;
    },
  };
  const turns: number[] = [];
  let isOver = false;
  const others = () => {
    turns.push(written);
    if (!isOver) setImmediate(others);
  };
  setImmediate(others);
  await pump({ first: batches(fakeBatch([], 'one')) }, encoder, { head: '', tail: () => '' }, sink);
  isOver = true;
  assert.equal(written, 64 * chunk.length);
  const longest = Math.max(...turns.map((bytes, n) => bytes - (turns[n - 1] ?? 0)));
  assert.ok(longest <= 128 * 1024, `${longest} bytes in one turn`);
});
