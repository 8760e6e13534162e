import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError, storeUnavailable } from '../../../src/base/errors.ts';
import type { ReadBatch } from '../../../src/store/batch.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import type { ChangeFeed, LookUpResult } from '../../../src/store/change-feed.ts';
import { ReadTurns } from '../../../src/store/turns/read-turns.ts';
import { retryingFeed, streamReader } from '../../../src/store/turns/readers.ts';
import { Slots } from '../../../src/store/turns/slots.ts';
import { arrayBody, batchOf } from '../../support/rows/transcode.ts';
import { NEVER, PLENTY, takeRows } from '../../support/store/reading.ts';

const PLAN = { sort: '_id', direction: 1 } as const;
const SIZE = { rows: 1, bytes: 1 };
const AWAY = storeUnavailable(new Error('away'));

/** A reader with a clock that only pauses move. `answers` are the store's answers in order; the last one repeats. */
function reader(...answers: (ReadBatch | Error)[]) {
  const pauses: number[] = [];
  let time = 0;
  let asked = 0;
  const rows = streamReader(
    {
      read: () => {
        const answer = answers[Math.min(asked++, answers.length - 1)];
        return answer instanceof Error
          ? Promise.reject(answer)
          : Promise.resolve(answer ?? assert.fail('no answer'));
      },
    },
    new ReadTurns(),
    {
      retryMs: 30_000,
      now: () => time,
      pause: (ms, signal) => {
        signal.throwIfAborted();
        pauses.push(ms);
        time += ms;
        return Promise.resolve();
      },
    },
  );
  return { read: (signal = NEVER) => rows.read(PLAN, {}, SIZE, signal), pauses, asked: () => asked };
}

test('a read, and the proof of its batch, is retried until the store is back', async () => {
  let proofs = 0;
  const confirm = () => (proofs++ < 2 ? Promise.reject(AWAY) : Promise.resolve());
  const batch = { rows: 1, slot: { capacity: 1 }, confirm } as unknown as ReadBatch;
  const { read, pauses } = reader(AWAY, AWAY, AWAY, batch);
  const found = await read();
  assert.equal(found.rows, 1);
  assert.deepEqual(pauses, [50, 100, 200]);
  await found.confirm(NEVER);
  assert.deepEqual(pauses, [50, 100, 200, 50, 100]);
});

test('after 30 seconds of retries the store is reported as unavailable', async () => {
  const { read, pauses } = reader(AWAY);
  await assert.rejects(read(), (error) => error === AWAY);
  const total = pauses.reduce((sum, ms) => sum + ms, 0);
  assert.ok(total > 28_000 && total < 30_000, String(total));
  assert.equal(Math.max(...pauses), 1000);
});

test('other failures are not retried', async () => {
  const broken = new TypeError('a bug');
  const { read, pauses } = reader(broken);
  await assert.rejects(read(), (error) => error === broken);
  assert.deepEqual(pauses, []);
});

test('a read of a client that has left is not tried', async () => {
  const gone = new Error('gone');
  const { read, asked } = reader(AWAY);
  await assert.rejects(read(AbortSignal.abort(gone)), (error) => error === gone);
  assert.equal(asked(), 0);
});

test('a read that hangs is aborted when its time is up', async () => {
  let aborted = false;
  const rows = streamReader(
    {
      read: (_plan, _from, _size, signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            aborted = true;
            reject(signal.reason as Error);
          });
        }),
    },
    new ReadTurns(),
    { retryMs: 20 },
  );
  await assert.rejects(rows.read(PLAN, {}, SIZE, NEVER), { code: 'store-unavailable' });
  assert.ok(aborted);
});

test('a look-up that fails is tried again, and goes on behind the rows that it had', async () => {
  const slots = new Slots();
  const keys = ['a', 'b', 'c'].map((_id) => makeBookmark({ _id }));
  let outcomes: (Error | null)[] = [];
  const lookUp = ([key]: Parameters<ChangeFeed['lookUp']>[0]): Promise<LookUpResult> => {
    const failure = outcomes.shift();
    if (failure) return Promise.reject(failure);
    return Promise.resolve({ taken: 1, batch: key ? batchOf(slots, arrayBody([key])) : null });
  };
  const never = () => assert.fail();
  const feed: ChangeFeed = { now: never, at: never, reaches: never, read: never, lookUp };
  const pause = () => Promise.resolve();
  const reader = retryingFeed(feed, new ReadTurns(), { retryMs: 60_000, pause });
  const idsRead = async () => {
    const ids: unknown[] = [];
    const size = { rows: 1_000, bytes: PLENTY };
    for await (const batch of reader.rows(keys, PLAN, size, NEVER))
      ids.push(...takeRows(batch).map((row): unknown => BSON.deserialize(row)._id));
    return ids;
  };
  outcomes = [AWAY, null, AWAY, AWAY];
  assert.deepEqual(await idsRead(), ['a', 'b', 'c']);
  const refused = new AppError('store-unfit', 'x');
  outcomes = [null, refused];
  await assert.rejects(idsRead(), refused);
  assert.equal(slots.taken, 0);
});
