import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { crc32 } from '../../../src/pipeline/crc32.ts';
import type { ReaderPosition } from '../../../src/resources/changes/page.ts';
import { Pages, pagesOf } from '../../../src/resources/changes/pages.ts';
import type { Question } from '../../../src/resources/changes/question.ts';
import { createTranscoder } from '../../../src/rows/transcoder.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { ReadTurns } from '../../../src/store/turns/read-turns.ts';
import { streamReader } from '../../../src/store/turns/readers.ts';
import { sinkTo } from '../../support/process/app.ts';
import { deferred } from '../../support/engine/raw.ts';
import { NEVER } from '../../support/store/reading.ts';
import { testSqlite } from '../../support/store/sqlite/sqlite.ts';

type Tally = Readonly<Record<'rows' | 'removed' | 'bytes', number>> & {
  readonly cursor: string;
  readonly upToDate: boolean;
  readonly crc32: string;
};

/** What a pause between two turns takes. */
const PAUSE_MS = 3;

/** A follower: a sink that takes everything at once, or waits at a gate. It checks every checkpoint. */
class Reader {
  readonly left = new AbortController();
  readonly pieces: string[] = [];
  parked = false;
  readonly parks = deferred();
  readonly stay: Promise<ReaderPosition>;
  last: Tally | null = null;
  /** What writes wait for from now on. */
  gate: Promise<void> | undefined;
  #lines = '';
  #waiting: { readonly pieces: number; readonly resolve: () => void } | null = null;

  constructor(question: Question, at: ReaderPosition, isAlone = false) {
    const write = (chunk: Uint8Array) => this.#write(Buffer.from(chunk).toString());
    const sink = { ...sinkTo(write), signal: this.left.signal };
    const parked = () => {
      this.parked = true;
      this.parks.resolve();
      return () => void (this.parked = false);
    };
    this.stay = Pages.follow(question, at, { sink, wrote: () => undefined, parked, isAlone: () => isAlone });
    this.stay.catch(() => undefined); // awaited by its test
  }

  #write(text: string): void | Promise<void> {
    this.pieces.push(text);
    const lines = text.split('\n').slice(0, -1);
    const { checkpoint } = JSON.parse(lines.pop() ?? '') as { checkpoint: Tally };
    this.#lines += lines.map((line) => `${line}\n`).join('');
    const crc = crc32(this.#lines).toString(16).padStart(8, '0');
    assert.deepEqual([checkpoint.bytes, checkpoint.crc32], [this.#lines.length, crc]);
    this.last = checkpoint;
    if (this.#waiting && this.pieces.length >= this.#waiting.pieces) this.#waiting.resolve();
    return this.gate;
  }

  /** Resolves when this number of pieces has come. */
  has(pieces: number): Promise<void> {
    if (this.pieces.length >= pieces) return Promise.resolve();
    return new Promise((resolve) => (this.#waiting = { pieces, resolve }));
  }
}

async function opened(t: TestContext, change: Partial<Question> = {}) {
  const { store, slots } = await testSqlite(t);
  const feed = store.items.changes;
  const rows = streamReader(store.items, new ReadTurns(), { retryMs: 1_000 });
  const { changes } = rows;
  assert.ok(feed && changes);
  const { identity } = await store.items.describe(NEVER);
  const transcoder = createTranscoder(slots);
  const question: Question = {
    name: 'all',
    collection: 'items',
    rows,
    changes,
    lines: () => transcoder.encoder('lines'),
    plan: { sort: '_id', direction: 1, ...(identity !== undefined && { identity }) },
    framed: (text) => text,
    now: () => performance.now(),
    stopping: new AbortController().signal,
    heartbeatMs: 60_000,
    begun: () => 0,
    ...change,
  };
  t.after(() => {
    assert.equal(pagesOf(question), undefined, 'the pages have ended');
    assert.equal(slots.taken, 0, 'every slot was released');
  });
  const at = async (): Promise<ReaderPosition> => ({
    at: { place: await feed.now(NEVER), cursor: 'first', isUpToDate: true },
    sums: { rows: 0, removed: 0, bytes: 0, crc: 0 },
  });
  const putAll = (ids: readonly string[], filler = '') =>
    store.items.insert(
      ids.map((_id) => BSON.serialize({ _id, category: 'x', price: 1, filler })),
      'replace',
    );
  const put = (id: string, filler = '') => putAll([id], filler);
  return { question, at, put, putAll };
}

/** A follower that has had two pages, and the places before them. */
async function openedWithPages(t: TestContext) {
  const { question, at, put } = await opened(t);
  const start = await at();
  const first = new Reader(question, start);
  await put('a');
  await first.has(1);
  const later = await at();
  await put('b');
  await first.has(2);
  return { question, put, start, first, later };
}

/** All followers leave, and with them the pages end. */
async function leave(...readers: readonly Reader[]): Promise<void> {
  for (const { left } of readers) left.abort(new Error('left'));
  for (const { stay } of readers) await assert.rejects(stay, /left/);
}

test('a follower that has not taken the page before gets no other one, and leaves with its place; another stays', async (t) => {
  const { question, at, put } = await opened(t);
  const start = await at();
  const slow = new Reader(question, start);
  const fast = new Reader(question, start);
  const gate = deferred();
  slow.gate = gate.promise.then(() => undefined);
  await put('a');
  await Promise.all([slow.has(1), fast.has(1)]);
  await put('b');
  await fast.has(2);
  let isBack = false;
  const standing = slow.stay.then((rest) => {
    isBack = true;
    return rest;
  });
  await put('c');
  await fast.has(3);
  await slow.parks.promise;
  assert.deepEqual([slow.pieces.length, slow.parked, isBack], [1, true, false], 'it waits for its sink');
  gate.resolve();
  const { sums, at: last } = await standing;
  assert.deepEqual([sums.rows, last.cursor, slow.parked], [1, slow.last?.cursor, false]);
  await leave(fast);
});

test('lines of many bytes are no page, and are left to the loops of the readers', async (t) => {
  const { question, at, put } = await opened(t);
  const start = await at();
  const readers = [new Reader(question, start), new Reader(question, start)];
  await put('a', 'x'.repeat(1_000_000));
  for (const { stay, pieces } of readers) {
    const { at: rest } = await stay;
    assert.deepEqual([rest, pieces], [start.at, []]);
  }
});

test('there is a page of a checkpoint while nothing happens', async (t) => {
  const { question, at, put } = await opened(t, { heartbeatMs: 20 });
  const reader = new Reader(question, await at());
  await reader.has(2);
  await put('a');
  await reader.has(reader.pieces.length + 2);
  assert.equal(reader.last?.rows, 1);
  await leave(reader);
});

test('followers behind the newest page get what changed since by one look-up, and the next page with the others', async (t) => {
  const { question, put, start, first, later } = await openedWithPages(t);
  const lookUps = t.mock.method(question.changes, 'rows').mock;
  const late = [later, start, later].map((from) => new Reader(question, from));
  await Promise.all(late.map((one) => one.has(1)));
  assert.equal(lookUps.callCount(), 1, 'one look-up for all of them');
  assert.deepEqual([late[1]?.last?.rows, late[1]?.last?.upToDate], [2, true]);
  for (const { last } of late)
    assert.equal(last?.cursor, first.last?.cursor, 'they are where the first one is');
  await put('c');
  await Promise.all([first.has(3), ...late.map((one) => one.has(2))]);
  assert.equal(lookUps.callCount(), 2, 'one look-up for them and the first one');
  await leave(first, ...late);
});

test('a follower learns that it is up to date although nothing changes, and the others get nothing', async (t) => {
  const { question, at } = await opened(t);
  const { at: stop, sums } = await at();
  const reader = new Reader(question, { at: stop, sums });
  const other = new Reader(question, { at: { ...stop, isUpToDate: false }, sums });
  await other.has(1);
  assert.deepEqual([other.last?.rows, other.last?.upToDate], [0, true]);
  assert.deepEqual(reader.pieces, []);
  await leave(reader, other);
});

test('a follower whose place is before a page that is being read gets the next one', async (t) => {
  const { question, start, first, later } = await openedWithPages(t);
  const read = question.changes.rows.bind(question.changes);
  const isReading = deferred();
  const mayRead = deferred();
  const gate = t.mock.method(question.changes, 'rows', async function* (...call: Parameters<typeof read>) {
    isReading.resolve();
    await mayRead.promise;
    yield* read(...call);
  });
  const late = new Reader(question, later);
  await isReading.promise;
  const earlier = new Reader(question, start);
  mayRead.resolve();
  await Promise.all([late.has(1), earlier.has(1)]);
  assert.deepEqual([late.last?.rows, earlier.last?.rows, gate.mock.callCount()], [1, 2, 2]);
  await leave(first, late, earlier);
});

test('the next page is read after a rest as long as followers had with the one before', async (t) => {
  let late = 0;
  const { question, at, put } = await opened(t, { now: () => performance.now() + late });
  const read = question.changes.read.bind(question.changes);
  const reads: number[] = [];
  t.mock.method(question.changes, 'read', (...call: Parameters<typeof read>) => {
    reads.push(performance.now());
    return read(...call);
  });
  const reader = new Reader(question, await at());
  const given = reader.has(1).then(() => {
    late += 10_000;
    return performance.now();
  });
  await put('a');
  const end = await given;
  await put('b');
  await reader.has(2);
  const next = reads.find((time) => time > end) ?? assert.fail();
  assert.ok(next - end >= 390, `it read on after ${next - end} ms`);
  await leave(reader);
});

test('followers pause between their turns with a page while requests come, but not for long', async (t) => {
  const timeouts = t.mock.method(globalThis, 'setTimeout').mock;
  let time = 0;
  const now = () => (time += 0.2);
  const pausesOf = async (begun: () => number) => {
    const { question, at, put } = await opened(t, { now, begun, heartbeatMs: 1e9 });
    const start = await at();
    const readers = Array.from({ length: 8 }, () => new Reader(question, start));
    const before = timeouts.callCount();
    await put('a');
    await Promise.all(readers.map((one) => one.has(1)));
    const { calls } = timeouts;
    await leave(...readers);
    return calls.slice(before).filter(({ arguments: [, ms] }) => ms === PAUSE_MS).length;
  };
  let requests = 0;
  assert.ok((await pausesOf(() => ++requests)) > 0, 'requests come');
  assert.equal(await pausesOf(() => 7), 0, 'none comes');
  const late = () => {
    time += 1_000;
    return ++requests;
  };
  assert.equal(await pausesOf(late), 0, 'the page takes long');
});

test('a reader alone leaves while it is behind, and stays beside others', async (t) => {
  const { question, at, putAll } = await opened(t);
  const start = await at();
  const rows = 300; // more than the first page takes
  const alone = new Reader(question, start, true);
  await putAll(Array.from({ length: rows }, (_, n) => `${n}`));
  const { at: stop, sums } = await alone.stay;
  assert.deepEqual([alone.pieces.length, stop.isUpToDate, sums.rows < rows], [1, false, true]);
  const other = new Reader(question, start);
  await other.has(2);
  assert.deepEqual([other.last?.rows, other.last?.upToDate], [rows, true]);
  await leave(other);
});
