import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { BY_ID, FeedAnswer } from '../../../src/resources/changes/answer.ts';
import { SeveralFeeds } from '../../../src/resources/changes/several.ts';
import { createTranscoder } from '../../../src/rows/transcoder.ts';
import { EVERYTHING } from '../../../src/rows/selection.ts';
import { makeBookmark, type Bookmark } from '../../../src/store/bookmark.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { ReadTurns } from '../../../src/store/turns/read-turns.ts';
import { streamReader, type FeedReader } from '../../../src/store/turns/readers.ts';
import type { OwnedCollection } from '../../../src/store/store.ts';
import { pump } from '../../../src/pipeline/pump.ts';
import { sinkTo } from '../../support/process/app.ts';
import { deferred } from '../../support/engine/raw.ts';
import { NEVER } from '../../support/store/reading.ts';
import { testSqlite } from '../../support/store/sqlite/sqlite.ts';

/** An answer about two sets from now on, which is pumped into `write`. `wrap` changes what the sets are read by. */
async function running(
  t: TestContext,
  write: (text: string) => void | Promise<void>,
  wrap: (reader: FeedReader, name: string) => FeedReader,
) {
  const { store, slots } = await testSqlite(t);
  const stop = new AbortController();
  const turns = new ReadTurns();
  const open = async (name: string) => {
    const rows = await store.open({ name, collection: name, indexes: [] });
    const streams = streamReader(rows, turns, { retryMs: 1_000 });
    assert.ok(rows.changes && streams.changes);
    const place = await rows.changes.now(NEVER);
    const { identity } = await rows.describe(NEVER);
    const set = {
      name,
      query: new Map(),
      collection: name,
      rows: streams,
      shown: EVERYTHING,
      limit: Infinity,
      changes: wrap(streams.changes, name),
      plan: { sort: '_id', direction: 1 as const, ...(identity !== undefined && { identity }) },
      start: { place, walk: 'over' as const },
    };
    return { rows, set };
  };
  const a = await open('a');
  const b = await open('b');
  const followed = new SeveralFeeds([a.set, b.set], [stop.signal], createTranscoder(slots));
  const { lines, start, stopping } = followed;
  const end = { opens: true, follows: true, waitMs: 0, limit: Infinity };
  const times = { now: () => performance.now(), heartbeatMs: 15_000 };
  const answer = new FeedAnswer(lines, start, { followed, end, stopping, ...times });
  const sink = { ...sinkTo((chunk) => write(Buffer.from(chunk).toString())), chunkBytes: 512 };
  const again = { plan: BY_ID, after: (row: Bookmark) => answer.after(row, sink.signal) };
  const frame = { head: '', tail: () => answer.encoder.end() };
  const batches = { first: answer.batches(sink.signal), again, parkAfterMs: 0 };
  const ended = pump(batches, answer.encoder, frame, sink);
  const put = async (rows: OwnedCollection, from: number, count: number) => {
    const documents = Array.from({ length: count }, (_, n) => BSON.serialize({ _id: from + n, n }));
    await rows.insert(documents, 'replace');
  };
  return { a: a.rows, b: b.rows, put, stop, ended, slots };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

/** The ids of the rows of a set in an answer. */
function idsOf(text: string, name: string): number[] {
  return [...text.matchAll(new RegExp(`^\\{"resource":"${name}","row":\\{"id":(\\d+)`, 'gm'))].map(([, id]) =>
    Number(id),
  );
}

test('a set that changes without an end does not keep another one from its reader', async (t) => {
  let text = '';
  let from = 0;
  let isOver = false;
  const changing = deferred();
  const seen = deferred();
  const run = await running(
    t,
    (piece) => {
      text += piece;
      if (text.includes('"resource":"a"')) changing.resolve();
      if (text.includes('"resource":"b"')) seen.resolve();
    },
    (reader, name) => ({
      ...reader,
      read: async (...call) => {
        if (name === 'a' && !isOver) await run.put(run.a, (from += 5), 5); // there is always more
        return reader.read(...call);
      },
    }),
  );
  await changing.promise;
  await run.put(run.b, 0, 1);
  await seen.promise;
  isOver = true;
  run.stop.abort();
  await run.ended;
  assert.equal(run.slots.taken, 0);
});

for (const [place, begins] of [
  ['at a row', '{"resource":"a","row":'],
  ['at a removal, while rows of another set have been read', '{"resource":"a","removed":'],
] as const)
  test(`a reader that stalls ${place} stalls all sets, holds none of their rows, and loses nothing`, async (t) => {
    let text = '';
    const stalled = deferred();
    const again = deferred();
    const all = deferred();
    let isFirst = true;
    let open = 0;
    let read = 0;
    const counted = (reader: FeedReader): FeedReader => ({
      ...reader,
      async *rows(...call) {
        for await (const batch of reader.rows(...call)) {
          open++;
          read++;
          const release = () => {
            open--;
            batch.release();
          };
          yield { ...batch, release };
        }
      },
    });
    const run = await running(
      t,
      (piece) => {
        text += piece;
        if (['a', 'b'].every((name) => new Set(idsOf(text, name)).size === 300)) all.resolve();
        if (!isFirst || !piece.includes(begins)) return undefined;
        isFirst = false;
        stalled.resolve();
        return again.promise;
      },
      counted,
    );
    await run.put(run.a, 0, 1);
    if (begins.includes('removed')) await run.a.remove([makeBookmark({ _id: 0 })]);
    await stalled.promise;
    const before = text.length;
    await run.put(run.b, 0, 300);
    if (begins.includes('removed')) await until(() => read > 0);
    await until(() => open === 0);
    await run.put(run.a, 0, 300);
    assert.equal(text.length, before, 'nothing is written meanwhile');
    again.resolve();
    await all.promise;
    run.stop.abort();
    await run.ended;
    for (const name of ['a', 'b'])
      assert.deepEqual(
        [...new Set(idsOf(text, name))].sort((x, y) => x - y),
        [...Array(300).keys()],
        name,
      );
    const sums = [...text.matchAll(/"end":.*"rows":(\d+),"removed":(\d+),"bytes":(\d+)/g)].map(([, ...two]) =>
      two.map(Number),
    );
    const lines = text.split('\n').filter((line) => line.startsWith('{"resource"'));
    const removed = lines.filter((line) => line.includes('"removed"')).length;
    const bytes = lines.reduce((sum, { length }) => sum + length + 1, 0);
    assert.deepEqual(sums, [[lines.length - removed, removed, bytes]]);
    assert.equal(run.slots.taken, 0);
  });
