import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test, type TestContext } from 'node:test';
import { BY_ID, FeedAnswer, oneFeed, type AnswerOptions } from '../../../src/resources/changes/answer.ts';
import type { Start } from '../../../src/resources/changes/follow.ts';
import { createTranscoder } from '../../../src/rows/transcoder.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { makeBookmark, type Bookmark } from '../../../src/store/bookmark.ts';
import { ReadTurns } from '../../../src/store/turns/read-turns.ts';
import { streamReader, type FeedReader } from '../../../src/store/turns/readers.ts';
import { pump } from '../../../src/pipeline/pump.ts';
import { testSqlite } from '../../support/store/sqlite/sqlite.ts';
import { sinkTo } from '../../support/process/app.ts';
import { deferred } from '../../support/engine/raw.ts';
import { NEVER } from '../../support/store/reading.ts';

/** An answer on a store with a clock of its own, from the present place. `wrap` changes what it reads by. */
async function runOn(
  t: TestContext,
  wrap: (reader: FeedReader) => FeedReader,
  now: () => number,
  walk: 'begun' | 'over' = 'over',
  change: Partial<AnswerOptions> = {},
) {
  const { store, slots } = await testSqlite(t);
  if (walk === 'begun')
    await store.items.insert([BSON.serialize({ _id: 'a', category: 'x', price: 1 })], 'fail');
  const transcoder = createTranscoder(slots);
  const streams = streamReader(store.items, new ReadTurns(), { retryMs: 1_000 });
  const feed = store.items.changes;
  assert.ok(feed && streams.changes);
  const place = await feed.now(NEVER);
  const stop = new AbortController();
  const start: Start =
    walk === 'over'
      ? { place, walk, first: { keys: [], next: place, isUpToDate: true } }
      : { place, walk: null };
  const { identity } = await store.items.describe(NEVER);
  const run = new FeedAnswer(transcoder.encoder('lines'), start, {
    followed: oneFeed({
      collection: 'items',
      plan: { sort: '_id', direction: 1, ...(identity !== undefined && { identity }) },
      rows: streams,
      changes: wrap(streams.changes),
    }),
    end: { opens: true, follows: true, waitMs: 0, limit: Infinity },
    now,
    stopping: stop.signal,
    heartbeatMs: 15_000,
    ...change,
  });
  return { run, store, slots, stop };
}

/** Pumps an answer into `write`, to its end. */
async function pumped(run: FeedAnswer, write: (chunk: Uint8Array) => void | Promise<void>): Promise<void> {
  const sink = { ...sinkTo(write), chunkBytes: 512 };
  const again = { plan: BY_ID, after: (row: Bookmark) => run.after(row, sink.signal) };
  const frame = { head: '', tail: () => run.encoder.end() };
  await pump({ first: run.batches(sink.signal), again, parkAfterMs: 0 }, run.encoder, frame, sink);
}

test('a feed to which nothing happens sends a checkpoint every 15 seconds, and one within a second of a change', async (t) => {
  let time = 0;
  const waits: number[] = [];
  const { run, store, stop } = await runOn(
    t,
    (reader) => ({
      ...reader,
      read: async (place, size, identity, signal) => {
        waits.push(size.waitMs);
        if (waits.length === 3)
          await store.items.insert([BSON.serialize({ _id: 'a', category: 'x', price: 1 })], 'fail');
        if (waits.length === 7) stop.abort();
        const changed = await reader.read(place, { ...size, waitMs: 0 }, identity, signal);
        time += changed.keys.length > 0 ? 100 : size.waitMs;
        return changed;
      },
    }),
    () => time,
  );
  const lines: string[] = [];
  await pumped(run, (chunk) => void lines.push(`${time} ${Buffer.from(chunk).toString().slice(0, 8)}`));
  // One read does not wait: it shows that nothing has changed since the row was looked up.
  assert.deepEqual(waits, [15_000, 15_000, 15_000, 0, 900, 15_000, 15_000]);
  assert.deepEqual(lines, [
    '0 {"checkp',
    '15000 {"checkp',
    '30000 {"checkp',
    '30100 {"id":"a',
    '31000 {"checkp',
    '46000 {"checkp',
    '46000 {"checkp', // the server stops
    '46000 {"end":{',
  ]);
});

test('a copy learns within a second of its last row that it is up to date', async (t) => {
  let time = 0;
  const { run, stop } = await runOn(
    t,
    (reader) => ({
      ...reader,
      read: async (place, size, identity, signal) => {
        time += size.waitMs;
        return reader.read(place, { ...size, waitMs: 0 }, identity, signal);
      },
    }),
    () => time,
    'begun',
  );
  let checkpointAt = Infinity;
  await pumped(run, (chunk) => {
    if (!Buffer.from(chunk).includes('"upToDate":true')) return;
    checkpointAt = Math.min(checkpointAt, time);
    stop.abort();
  });
  assert.ok(checkpointAt <= 1_000, `it learned that after ${checkpointAt} ms`);
});

for (const [slow, fewest] of [
  ['store', 250],
  ['reader', 1],
] as const)
  test(`a slow ${slow} ${slow === 'store' ? 'does not make' : 'makes'} a feed read fewer keys at a time`, async (t) => {
    let time = 0;
    let price = 0; // the same bytes once more would be no change
    const sizes: number[] = [];
    /** The next read shows whether something has changed since rows were looked up. It asks for one key. */
    let isProof = false;
    const { run, store, stop } = await runOn(
      t,
      (reader) => ({
        ...reader,
        async *rows(...call) {
          if (slow === 'store') time += 20_000; // it serves a thousand others meanwhile
          yield* reader.rows(...call);
        },
        read: async (place, size, identity, signal) => {
          if (!isProof) sizes.push(size.most);
          if (sizes.length === 8) stop.abort();
          await store.items.insert(
            Array.from({ length: 40 }, (_, n) =>
              BSON.serialize({ _id: `row ${n}`, category: 'x', price: ++price }),
            ),
            'replace',
          );
          const changed = await reader.read(place, { ...size, waitMs: 0 }, identity, signal);
          isProof = !isProof && changed.isUpToDate && changed.keys.length > 0;
          return changed;
        },
      }),
      () => time,
    );
    await pumped(run, () => void (time += slow === 'reader' ? 2_000 : 0));
    assert.equal(Math.min(...sizes), fewest, `it asked for ${sizes.join(', ')} keys`);
  });

test('a reader that stalls holds no slot, and gets the rows that it has not read as they are when it goes on', async (t) => {
  let open = 0;
  const counted = (reader: FeedReader): FeedReader => ({
    ...reader,
    async *rows(...call) {
      for await (const batch of reader.rows(...call)) {
        open++;
        const release = () => {
          open--;
          batch.release();
        };
        yield { ...batch, release };
      }
    },
  });
  const { run, store, slots, stop } = await runOn(t, counted, () => 0);
  const rows = Array.from({ length: 40 }, (_, n) => ({
    _id: `a${String(n).padStart(2, '0')}`,
    category: 'x',
    price: 0,
    filler: 'x'.repeat(100),
  }));
  await store.items.insert(
    rows.map((row) => BSON.serialize(row)),
    'fail',
  );
  const stalled = deferred();
  const goOn = deferred();
  let text = '';
  let isStalled = false;
  const done = pumped(run, (chunk) => {
    text += Buffer.from(chunk).toString();
    if (text.includes('"a39"')) stop.abort();
    if (isStalled || !text.includes('"a05"')) return undefined;
    isStalled = true;
    stalled.resolve();
    return goOn.promise.then(() => undefined);
  });
  await stalled.promise;
  while (open > 0) await new Promise((resolve) => setImmediate(resolve));
  await store.items.insert([BSON.serialize({ ...rows[20], price: 1 })], 'replace');
  await store.items.remove([makeBookmark({ _id: 'a30' })]);
  goOn.resolve();
  await done;
  const ids = [...text.matchAll(/^\{"id":"(a\d\d)","category":"x","price":(\d)/gm)];
  assert.deepEqual(
    ids.map(([, id]) => id),
    rows.map(({ _id }) => _id).filter((id) => id !== 'a30'),
  );
  assert.equal(ids.find(([, id]) => id === 'a20')?.[2], '1');
  assert.match(text, /^\{"removed":\{"id":"a30"\}\}$/m);
  assert.equal(slots.taken, 0);
});

/** A reader whose reads never end by themselves. */
function hanging() {
  const asked = deferred();
  const wrap = (reader: FeedReader): FeedReader => ({
    ...reader,
    read: (_place, _size, _identity, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
        asked.resolve();
      }),
  });
  return { wrap, asked: asked.promise };
}

test('a feed that waits rejects with the reason of its reader, whatever the server does, and listens to none of them', async (t) => {
  const { wrap, asked } = hanging();
  const { run, stop } = await runOn(t, wrap, () => 0);
  const reader = new AbortController();
  const read = (async () => {
    for await (const batch of run.batches(reader.signal)) batch.release();
  })();
  await asked;
  reader.abort(new Error('the reader has left'));
  stop.abort();
  await assert.rejects(read, /the reader has left/);
  for (const { signal } of [reader, stop]) assert.equal(getEventListeners(signal, 'abort').length, 0);
});

/** The sums of a response that has sent no line. */
const NOTHING = { rows: 0, removed: 0, bytes: 0, crc: 0 };

/** Writes before each read of the log, and counts these. */
function changing(write: () => Promise<unknown>) {
  const counts = { reads: 0 };
  const wrap = (reader: FeedReader): FeedReader => ({
    ...reader,
    read: async (place, size, identity, signal) => {
      counts.reads++;
      await write();
      return reader.read(place, { ...size, waitMs: 0 }, identity, signal);
    },
  });
  return { wrap, counts };
}

test('a feed may rest at the end of the log although rows change all the time, and does not say that it is up to date', async (t) => {
  let price = 0;
  const put = () =>
    store.items.insert([BSON.serialize({ _id: 'b', category: 'x', price: ++price })], 'replace');
  const { wrap } = changing(() => put());
  const { run, store } = await runOn(t, wrap, () => 0, 'begun', { rests: () => true });
  await pumped(run, () => undefined);
  assert.deepEqual([run.rest?.at.isUpToDate, run.rest?.sums.rows], [false, 2]);
});

test('a feed that goes on behind pages reads the log before it rests', async (t) => {
  const { wrap, counts } = changing(() => Promise.resolve());
  const { run } = await runOn(t, wrap, () => 0, 'over', { rests: () => true, sums: NOTHING });
  await pumped(run, () => undefined);
  assert.deepEqual([run.rest?.sums, counts.reads], [NOTHING, 1]);
});

test('a reader that takes long for its lines reads the log once more before it rests', async (t) => {
  let time = 0;
  let price = 0;
  const put = () =>
    store.items.insert([BSON.serialize({ _id: 'b', category: 'x', price: ++price })], 'replace');
  const { wrap, counts } = changing(() => (counts.reads < 3 ? put() : Promise.resolve()));
  const { run, store } = await runOn(t, wrap, () => time, 'over', { rests: () => true, sums: NOTHING });
  await pumped(run, () => void (time += counts.reads < 3 ? 2_000 : 0));
  assert.ok(counts.reads > 2, `it rested after ${counts.reads} reads`);
});
