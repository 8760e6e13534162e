import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '../../../src/base/errors.ts';
import { countValues, listValues, type LimitedTime } from '../../../src/resources/values/list-values.ts';
import { BSON, Int32 } from '../../../src/store/values/bson.ts';
import type { Bookmark } from '../../../src/store/bookmark.ts';
import type { Index } from '../../../src/store/indexes.ts';
import type { Collection } from '../../../src/store/store.ts';
import { textOf } from '../../support/answers.ts';
import { testClient } from '../../support/store/mongo/mongo.ts';
import { testMongo } from '../../support/store/mongo/mongod.ts';
import { NEVER } from '../../support/store/reading.ts';
import { serverOn } from '../../support/process/server.ts';

const INDEX: Index = {
  name: 'n_1__id_1',
  keys: [
    { path: 'n', sign: 1 },
    { path: '_id', sign: 1 },
  ],
  isUnique: false,
};
const PLAN = { index: INDEX, sort: 'n', direction: 1, equals: [] } as const;
const MOST = { after: null, most: 100, cursorOf: (value: Bookmark) => String(numberOf(value)) };

/** A bookmark `{n: number}`. */
function makeValue(n: number): Bookmark {
  return BSON.serialize({ n: new Int32(n) }) as Bookmark;
}

function numberOf(value: Bookmark): number {
  return BSON.deserialize(value).n as number;
}

/** A clock that only the test moves, and a signal that it aborts. */
function testTime() {
  let now = 0;
  const end = new AbortController();
  const time: LimitedTime = { isUp: () => end.signal.aborted || now >= 1_000, end: end.signal };
  return { time, pass: (ms: number) => void (now += ms), end: () => end.abort() };
}

/** The values 0, 1, 2, ... of which each takes some time. */
function slow(pass: () => void, count = Infinity): Collection['nextValue'] {
  return (_index, _equals, { after }) => {
    pass();
    const next = after ? numberOf(after) + 1 : 0;
    return Promise.resolve(next < count ? makeValue(next) : null);
  };
}

/** Never answers. Rejects with the reason of the signal when that aborts. */
function hangs(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(new AppError('store-unavailable', 'late'))),
  );
}

test('a slow store ends a list after a second, with at least one value and the cursor to go on', async () => {
  for (const [each, expected] of [
    [100, 10],
    [400, 3],
    [5_000, 1],
  ] as const) {
    const { time, pass } = testTime();
    const nextValue = slow(() => pass(each));
    const { values, hasMore } = await listValues({ nextValue }, PLAN, MOST, time, NEVER);
    assert.deepEqual([values.map(numberOf), hasMore], [Array.from({ length: expected }, (_, n) => n), true]);
  }
});

test('a read that hangs ends with the second: the values before it come, and a count is unknown', async () => {
  const { time, end } = testTime();
  const nextValue: Collection['nextValue'] = (_index, _equals, { after }, signal) => {
    if (!after) return Promise.resolve(makeValue(0));
    setImmediate(end);
    return hangs(signal);
  };
  const { values, hasMore } = await listValues({ nextValue }, PLAN, MOST, time, NEVER);
  assert.deepEqual([values.map(numberOf), hasMore], [[0], true]);

  const other = testTime();
  const count: Collection['count'] = ({ equals = [] }, _mode, signal) => {
    if (Number(equals[0]?.value) === 0) return Promise.resolve({ rows: 7, is: 'exact' });
    setImmediate(other.end);
    return hangs(signal);
  };
  const asked = { plan: PLAN, paths: [], indexes: [INDEX] };
  const listed = [0, 1, 2].map(makeValue);
  assert.deepEqual(await countValues(listed, asked, { count }, other.time, NEVER), [7, null, null]);
});

test('the first value is waited for, and a store that fails or a client that leaves ends the list with the reason', async () => {
  const first = testTime();
  const begun: AbortSignal[] = [];
  const nextValue: Collection['nextValue'] = (_index, _equals, { after }, signal) => {
    begun.push(signal);
    first.end();
    return Promise.resolve(after ? null : makeValue(5));
  };
  const { values, hasMore } = await listValues({ nextValue }, PLAN, MOST, first.time, NEVER);
  assert.deepEqual([values.map(numberOf), hasMore, begun.length], [[5], true, 1]);
  assert.equal(begun[0]?.aborted, false);

  const failing: Collection['nextValue'] = (_index, _equals, { after }) =>
    after ? Promise.reject(new AppError('store-unavailable', 'gone')) : Promise.resolve(makeValue(1));
  await assert.rejects(listValues({ nextValue: failing }, PLAN, MOST, testTime().time, NEVER), {
    code: 'store-unavailable',
  });
  const client = new AbortController();
  const leaving: Collection['nextValue'] = (_index, _equals, { after }, signal) => {
    if (!after) return Promise.resolve(makeValue(1));
    setImmediate(() => client.abort());
    return hangs(signal);
  };
  await assert.rejects(
    listValues({ nextValue: leaving }, PLAN, MOST, testTime().time, client.signal),
    AppError,
  );
});

test('a list ends at the last value that has a cursor, and is refused when it has none', async () => {
  const cursorOf = (value: Bookmark) => (numberOf(value) === 2 ? undefined : 'a cursor');
  const listed = (most: number, after: Bookmark | null = null) =>
    listValues(
      { nextValue: slow(() => undefined, 6) },
      PLAN,
      { after, most, cursorOf },
      testTime().time,
      NEVER,
    );
  assert.deepEqual((await listed(3)).values.map(numberOf), [0, 1]);
  assert.deepEqual((await listed(4)).values.map(numberOf), [0, 1, 2, 3]);
  await assert.rejects(listed(1, makeValue(1)), { code: 'sort-value-too-long' });
});

test('values that are passed over are counted with the value behind them, once in all pages', async () => {
  /** Before each value n there are n stretches that are left out, and two at the end. */
  const nextValue: Collection['nextValue'] = (_index, _equals, { after, onOmitted }) => {
    const next = after ? numberOf(after) + 1 : 0;
    for (let n = 0; n < (next < 5 ? next : 2); n++) onOmitted?.();
    return Promise.resolve(next < 5 ? makeValue(next) : null);
  };
  for (const most of [1, 2, 3, 5, 6]) {
    let after: Bookmark | null = null;
    let all: number[] = [];
    let more = true;
    while (more) {
      const from = { after, most, cursorOf: () => 'a cursor' };
      const { values, hasMore, omitted } = await listValues(
        { nextValue },
        PLAN,
        from,
        testTime().time,
        NEVER,
      );
      const numbers = values.map(numberOf);
      assert.equal(omitted, numbers.reduce((sum, n) => sum + n, 0) + (hasMore ? 0 : 2));
      after = values.at(-1) ?? null;
      all = [...all, ...numbers];
      more = hasMore;
    }
    assert.deepEqual(all, [0, 1, 2, 3, 4]);
  }
});

/** The longest cursor, in characters. */
const LONGEST = 12 * 1024;

test('a cursor of 12 KiB goes on to the byte, in pages, streams and values', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const orders = testClient(t, uri).db().collection('orders');
  await orders.createIndex({ ref: 1, _id: 1 });
  await orders.insertMany([
    { _id: 1 as never, ref: 'a'.repeat(9_000) },
    { _id: 2 as never, ref: 'b' },
  ]);
  const server = await serverOn(t, { MONGODB_URI: uri, EXPOSE: 'orders' });
  const ask = async (path: string) => {
    const response = await server.get(path);
    return (await response.json()) as Answer;
  };
  for (const [path, rest] of [
    ['/orders?sort=ref_asc&limit=1', '/orders/stream?sort=ref_asc'],
    ['/orders/values?field=ref&limit=1', '/orders/values?field=ref'],
  ] as const) {
    await orders.updateOne({ _id: 1 as never }, { $set: { ref: 'a'.repeat(9_000) } });
    const known = (await ask(path)).page?.nextCursor ?? assert.fail();
    const spare = Math.floor(((LONGEST - known.length) * 3) / 4); // 4 characters for 3 bytes
    let longest = 0;
    let refused = 0;
    for (let more = spare - 3; more <= spare + 3; more++) {
      await orders.updateOne({ _id: 1 as never }, { $set: { ref: 'a'.repeat(9_000 + more) } });
      const { code, page } = await ask(path);
      if (!page) {
        assert.equal(code, 'sort-value-too-long');
        refused++;
        continue;
      }
      const cursor = page.nextCursor ?? assert.fail();
      longest = Math.max(longest, cursor.length);
      const text = await textOf(server.get(`${rest}&cursor=${cursor}`));
      assert.ok(text.includes('"b"') && !text.includes('aaa'), text.slice(0, 100));
    }
    assert.equal(longest, LONGEST, path);
    assert.ok(refused > 0);
  }
  const above = await ask(`/orders?sort=ref_asc&cursor=${'A'.repeat(LONGEST + 1)}`);
  assert.equal(above.code, 'invalid-parameter');
  const broken = await ask(`/orders?sort=ref_asc&cursor=${'A'.repeat(LONGEST)}`);
  assert.equal(broken.code, 'invalid-cursor');
});

interface Answer {
  readonly code?: string;
  readonly page?: { readonly nextCursor: string | null };
}
