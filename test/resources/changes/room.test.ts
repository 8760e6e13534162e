import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { crc32 } from '../../../src/pipeline/crc32.ts';
import { Room, roomOf, type Question, type Standing } from '../../../src/resources/changes/room.ts';
import { createTranscoder } from '../../../src/rows/transcoder.ts';
import { AppError } from '../../../src/errors.ts';
import { BSON } from '../../../src/store/bson.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { ReadTurns } from '../../../src/store/read-turns.ts';
import { streamReader } from '../../../src/store/readers.ts';
import type { FeedReader } from '../../../src/store/tail.ts';
import { deferred } from '../../support/engine/raw.ts';
import { NEVER } from '../../support/store/reading.ts';
import { testSqlite } from '../../support/store/sqlite/sqlite.ts';

type Tally = Readonly<Record<'rows' | 'removed' | 'bytes', number>> & {
  readonly cursor: string;
  readonly upToDate: boolean;
  readonly crc32: string;
};

/** A reader in a room: a sink that takes everything at once, or waits at a gate. It checks every checkpoint. */
class Reader {
  readonly left = new AbortController();
  readonly pieces: string[] = [];
  parked = false;
  readonly stay: Promise<Standing>;
  last: Tally | null = null;
  /** What writes wait for from now on. */
  gate: Promise<void> | undefined;
  /** What writes fail with from now on. */
  failure: Error | undefined;
  #lines = '';
  #waiting: { readonly pieces: number; readonly resolve: () => void } | null = null;

  constructor(question: Question, at: Standing) {
    const sink = {
      ...{ chunkBytes: 512, signal: this.left.signal },
      write: (chunk: Uint8Array) => this.#write(Buffer.from(chunk).toString()),
      flush: () => undefined,
      end: () => undefined,
      fail: () => undefined,
    };
    const parked = () => {
      this.parked = true;
      return () => void (this.parked = false);
    };
    this.stay = Room.stay(question, at, { sink, wrote: () => undefined, parked });
    this.stay.catch(() => undefined); // awaited by its test
  }

  #write(text: string): void | Promise<void> {
    if (this.failure) throw this.failure;
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

  get lines(): readonly string[] {
    return this.pieces.flatMap((piece) => piece.split('\n').slice(0, -2));
  }
}

async function opened(t: TestContext, change: Partial<Question> = {}) {
  const { store, slots } = await testSqlite(t);
  const feed = store.items.changes;
  const rows = streamReader(store.items, new ReadTurns(), { retryMs: 1_000 });
  const { changes } = rows;
  assert.ok(feed && changes);
  const counts = { reads: 0, lookUps: 0 };
  const counted: FeedReader = {
    reaches: (...places) => changes.reaches(...places),
    rows: (...call) => {
      counts.lookUps++;
      return changes.rows(...call);
    },
    read: (...call) => {
      counts.reads++;
      return changes.read(...call);
    },
  };
  const stop = new AbortController();
  const { identity } = await store.items.describe(NEVER);
  const transcoder = createTranscoder(slots);
  const question: Question = {
    ...{ name: 'all', collection: 'items', rows, changes: counted, lines: () => transcoder.encoder('lines') },
    plan: { sort: '_id', direction: 1, ...(identity !== undefined && { identity }) },
    framed: (text) => text,
    ...{ now: () => performance.now(), stopping: stop.signal, heartbeatMs: 60_000 },
    ...change,
  };
  t.after(() => {
    assert.equal(roomOf(question), undefined, 'the room is closed');
    assert.equal(slots.taken, 0, 'every slot was released');
  });
  const at = async (): Promise<Standing> => ({
    at: { place: await feed.now(NEVER), cursor: 'first', isUpToDate: true },
    sums: { rows: 0, removed: 0, bytes: 0, crc: 0 },
  });
  const put = (_id: string, filler = '') =>
    store.items.insert([BSON.serialize({ _id, category: 'x', price: 1, filler })], 'replace');
  const remove = (_id: string) => store.items.remove([makeBookmark({ _id })]);
  return { question, counts, stop, at, put, remove };
}

/** All readers leave, and with them the room ends. */
async function leave(...readers: readonly Reader[]): Promise<void> {
  for (const { left } of readers) left.abort(new Error('left'));
  for (const { stay } of readers) await assert.rejects(stay, /left/);
}

test('a change is read and looked up once for all readers of a room, and each gets it with its own checkpoint', async (t) => {
  const { question, counts, at, put, remove } = await opened(t);
  const start = await at();
  const readers = Array.from({ length: 50 }, () => new Reader(question, start));
  const line = '{"removed":{"id":"before"}}\n';
  const before = { rows: 7, removed: 1, bytes: line.length, crc: crc32(line) };
  await put('a');
  await Promise.all(readers.map((one) => one.has(1)));
  assert.deepEqual(counts.lookUps, 1);
  const late = new Reader(question, { ...(await at()), sums: { ...before, bytes: 0, crc: 0 } });
  await remove('a');
  await Promise.all([...readers, late].map((one) => one.has(one === late ? 1 : 2)));
  for (const { pieces, last, lines } of readers) {
    assert.equal(pieces.length, 2, 'a line and its checkpoint come in one write');
    assert.deepEqual(lines.at(-1), '{"removed":{"id":"a"}}');
    assert.deepEqual([last?.rows, last?.removed, last?.upToDate], [1, 1, true]);
  }
  assert.deepEqual([late.last?.rows, late.last?.removed], [7, 2]);
  assert.deepEqual([counts.lookUps, counts.reads <= 5], [2, true]);
  await leave(...readers, late);
});

test('a reader that has not taken the lines before leaves with its place, and another stays', async (t) => {
  const { question, at, put } = await opened(t);
  const start = await at();
  const [slow, fast] = [new Reader(question, start), new Reader(question, start)];
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
  assert.deepEqual([slow.pieces.length, slow.parked, isBack], [1, true, false], 'it waits for its sink');
  gate.resolve();
  const { sums, at: last } = await standing;
  assert.deepEqual([sums.rows, last.cursor, slow.parked], [1, slow.last?.cursor, false]);
  await leave(fast);
});

test('a reader whose write is refused leaves with the error, and another stays', async (t) => {
  const { question, at, put } = await opened(t);
  const start = await at();
  const [revoked, other] = [new Reader(question, start), new Reader(question, start)];
  revoked.failure = new AppError('forbidden', 'The key was removed.');
  await put('a');
  await assert.rejects(revoked.stay, /removed/);
  await other.has(1);
  await leave(other);
});

test('readers go back to their own loops from their last place when the server stops', async (t) => {
  const { question, at, put, stop } = await opened(t);
  const start = await at();
  const readers = [new Reader(question, start), new Reader(question, start)];
  await put('a');
  await Promise.all(readers.map((one) => one.has(1)));
  stop.abort(new Error('the server stops'));
  for (const { stay, last } of readers) {
    const { sums, at: rest } = await stay;
    assert.deepEqual([sums.rows, rest.cursor, rest.isUpToDate], [1, last?.cursor, true]);
  }
  const { at: same } = await new Reader(question, start).stay;
  assert.equal(same, start.at, 'no room is opened any more');
});

for (const [what, fails] of [
  ['the read', 'read'],
  ['the look-up', 'rows'],
] as const)
  test(`readers go back to their own loops from their last place when ${what} fails`, async (t) => {
    const expired = new AppError('changes-expired', 'The history is gone.');
    const { question, at, put } = await opened(t);
    let isBroken = false;
    const { changes } = question;
    const read: FeedReader['read'] = async (...call) => {
      const changed = await changes.read(...call);
      if (isBroken && fails === 'read') throw expired;
      return changed;
    };
    const rows: FeedReader['rows'] = (...call) => {
      if (isBroken && fails === 'rows') throw expired;
      return changes.rows(...call);
    };
    const failing = { ...question, changes: { ...changes, read, rows } };
    const start = await at();
    const readers = [new Reader(failing, start), new Reader(failing, start)];
    await put('a');
    await Promise.all(readers.map((one) => one.has(1)));
    isBroken = true;
    await put('b');
    for (const { stay, pieces, last } of readers) {
      const { sums, at: rest } = await stay;
      assert.deepEqual([sums.rows, pieces.length, rest.cursor], [1, 1, last?.cursor]);
    }
    assert.equal(roomOf(failing), undefined);
  });

test('lines that are many bytes are left to the loops of the readers', async (t) => {
  const { question, at, put } = await opened(t);
  const start = await at();
  const readers = [new Reader(question, start), new Reader(question, start)];
  await put('a', 'x'.repeat(1_000_000));
  for (const { stay, pieces } of readers) {
    const { at: rest } = await stay;
    assert.deepEqual([rest, pieces], [start.at, []]);
  }
});

test('a room sends checkpoints while nothing happens, and does not take a reader whose place is before its own', async (t) => {
  const { question, at, put } = await opened(t, { heartbeatMs: 20 });
  const start = await at();
  const reader = new Reader(question, start);
  await reader.has(2);
  await put('a');
  await reader.has(reader.pieces.length + 2);
  assert.equal(reader.last?.rows, 1);
  assert.equal(roomOf(question)?.takes(start.at.place), false);
  const early = new Reader(question, start);
  assert.deepEqual([(await early.stay).at, early.pieces], [start.at, []]);
  await leave(reader);
});

test('a room that has given lines for long rests, and gives what changes meanwhile at once', async (t) => {
  let late = 0;
  const { question, at, put } = await opened(t, { now: () => performance.now() + late });
  const reader = new Reader(question, await at());
  const has = reader.has(1).then(() => (late += 10_000));
  await put('a');
  await has;
  await put('b');
  await put('c');
  await reader.has(2);
  assert.deepEqual(
    reader.pieces.map((piece) => piece.split('\n').length - 2),
    [1, 2],
  );
  await leave(reader);
});
