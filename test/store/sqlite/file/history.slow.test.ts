/**
 * Places in the history of a file whose copies are put back. A place gives exactly what a reader lacks, or is 410: the
 * store never takes the place of a state that the file has not had.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { AppError } from '../../../../src/base/errors.ts';
import { makeBookmark } from '../../../../src/store/bookmark.ts';
import { BSON } from '../../../../src/store/values/bson.ts';
import type { FeedPlace } from '../../../../src/store/change-feed.ts';
import { backUp } from '../../../../src/store/sqlite/file/backup.ts';
import { FILE } from '../../../../src/store/sqlite/file/file.ts';
import type { OwnedCollection, Store } from '../../../../src/store/store.ts';
import { temporaryFolder } from '../../../support/directory.ts';
import { childServer } from '../../../support/process/child-server.ts';
import { run, sluice } from '../../../support/process/commands.ts';
import { freePort } from '../../../support/ports.ts';
import { SEED } from '../../../support/seed.ts';
import { feedOf, lookUp } from '../../../support/store/changes.ts';
import { below, oneOf, randomFrom, type Random } from '../../../support/store/random-collection.ts';
import { NEVER, PLENTY, readRows } from '../../../support/store/reading.ts';
import { openDirectory, openFor, queryFile } from '../../../support/store/sqlite/sqlite.ts';

const ORDERS = { name: 'orders', collection: 'orders', indexes: [] };
const BY_ID = { sort: '_id', direction: 1 } as const;
const HISTORIES = process.env.LONG === '1' ? 100 : 8;
const STEPS = 60;
const IDS = 8;

type Rows = ReadonlyMap<number, number>;

/** A reader that stopped: its copy, its place, and what had been written until then. */
interface Stopped {
  readonly copy: Rows;
  readonly place: FeedPlace;
  readonly identity: string | undefined;
  readonly line: Line;
}

/** What was written until a state of the file. Another `history` when a backup was put back. */
interface Line {
  readonly history: number;
  readonly writes: readonly number[];
}

interface Copy {
  readonly path: string;
  readonly backup: string | null;
  readonly line: Line;
}

interface Opened {
  readonly store: Store;
  readonly rows: OwnedCollection;
}

/** A store whose directory is copied and put back, with its readers. */
class World {
  readonly #t: TestContext;
  readonly #random: Random;
  readonly #copies: Copy[] = [];
  readonly stopped: Stopped[] = [];
  readonly seen = { right: 0, expired: 0 };
  #path = '';
  #line: Line = { history: 0, writes: [] };
  #open: Opened[] = [];
  #made = 0;

  constructor(t: TestContext, random: Random) {
    this.#t = t;
    this.#random = random;
  }

  async step(): Promise<void> {
    const random = this.#random;
    if (this.#path === '') this.#path = join(await temporaryFolder(this.#t), 'data');
    if (this.#open.length === 0) await this.open();
    const chance = random();
    if (chance < 0.4) await this.#write();
    else if (chance < 0.6) await this.#stop();
    else if (chance < 0.75) await this.resume(oneOf(random, this.stopped));
    else if (chance < 0.8 && this.#open.length < 3) await this.open();
    else if (chance < 0.85) await this.close();
    else if (chance < 0.93) await this.#copy();
    else if (this.#copies.length > 0) await this.#putBack(oneOf(random, this.#copies));
  }

  async open(): Promise<void> {
    const store = await openDirectory(this.#path);
    this.#open.push({ store, rows: await store.open(ORDERS) });
  }

  async close(): Promise<void> {
    const [first] = this.#open.splice(below(this.#random, this.#open.length), 1);
    await first?.store.close();
  }

  async closeAll(): Promise<void> {
    while (this.#open.length > 0) await this.close();
  }

  async #write(): Promise<void> {
    const { rows } = oneOf(this.#random, this.#open);
    const _id = below(this.#random, IDS);
    const value = ++this.#made;
    if (this.#random() < 0.3) await rows.remove([makeBookmark({ _id })]);
    else await rows.insert([BSON.serialize({ _id, value })], 'replace');
    this.#line = { ...this.#line, writes: [...this.#line.writes, value] };
  }

  /** A reader begins, and stops behind the present state. */
  async #stop(): Promise<void> {
    const { rows } = oneOf(this.#random, this.#open);
    const place = await feedOf(rows).now(NEVER);
    const { identity } = await rows.describe(NEVER);
    this.stopped.push({ copy: await rowsIn(rows), place, identity, line: this.#line });
  }

  /** A reader goes on. It has the rows in the end, or was told that it cannot. */
  async resume(reader: Stopped | undefined): Promise<void> {
    if (!reader) return;
    const { rows } = oneOf(this.#random, this.#open);
    const feed = feedOf(rows);
    const copy = new Map(reader.copy);
    const most = 1 + below(this.#random, 4);
    const { line, identity } = reader;
    const hasAll =
      line.history === this.#line.history && line.writes.every((write, n) => write === this.#line.writes[n]);
    try {
      for (let { place } = reader; ;) {
        const { keys, next, isUpToDate } = await feed.read(place, { most, waitMs: 0 }, identity, NEVER);
        for (const key of keys) copy.delete((BSON.deserialize(key) as { _id: number })._id);
        const found = await lookUp(feed, keys, BY_ID, { rows: 100, bytes: PLENTY });
        for (const [id, value] of valuesOf(found)) copy.set(id, value);
        place = next;
        if (this.#random() < 0.2)
          this.stopped.push({ copy: new Map(copy), place, identity, line: this.#line });
        if (isUpToDate) break;
      }
      assert.deepEqual(sorted(copy), sorted(await rowsIn(rows)), 'a reader that goes on has the rows');
      this.seen.right++;
    } catch (error) {
      if (!(error instanceof AppError && error.status === 410)) throw error;
      assert.equal(hasAll, false, 'a place of what the file had is not refused');
      this.seen.expired++;
    }
  }

  /** A copy of the directory as it is (of a stopped store, or a snapshot), or a backup. */
  async #copy(): Promise<void> {
    const path = join(await temporaryFolder(this.#t), 'data');
    // By another process: this one would lose its locks on files that it opens and closes.
    execFileSync('cp', ['-r', this.#path, path]);
    const backup = this.#random() < 0.3 ? `${path}.db` : null;
    const settings = { replaces: false, onPages: () => undefined, signal: NEVER };
    if (backup !== null) await backUp({ ...settings, from: join(this.#path, FILE), to: backup });
    this.#copies.push({ path, backup, line: this.#line });
  }

  async #putBack({ path, backup, line }: Copy): Promise<void> {
    const before = this.#path;
    await this.closeAll();
    this.#path = join(await temporaryFolder(this.#t), 'data');
    execFileSync('cp', ['-r', backup === null ? path : before, this.#path]);
    this.#line = line;
    if (backup === null) return;
    for (const end of ['-wal', '-shm']) await rm(join(this.#path, FILE + end), { force: true });
    await copyFile(backup, join(this.#path, FILE));
    this.#line = { ...line, history: ++this.#made };
  }
}

async function rowsIn(rows: OwnedCollection): Promise<Rows> {
  return valuesOf((await readRows(rows, BY_ID, {}, { rows: 100, bytes: PLENTY })).rows);
}

function valuesOf(rows: readonly Uint8Array[]): Rows {
  return new Map(
    rows.map((row) => {
      const { _id, value } = BSON.deserialize(row) as { _id: number; value: number };
      return [_id, value];
    }),
  );
}

function sorted(rows: Rows): unknown {
  return [...rows].sort(([a], [b]) => a - b);
}

test('a reader goes on without a gap or is told, whatever copies of the directory are put back', async (t) => {
  const seen = { right: 0, expired: 0 };
  for (let history = 0; history < HISTORIES; history++) {
    const world = new World(t, randomFrom(SEED + history));
    await t.test(`seed ${SEED + history}`, async () => {
      for (let step = 0; step < STEPS; step++) await world.step();
      await world.open();
      for (const reader of [...world.stopped]) await world.resume(reader);
      await world.closeAll();
    });
    seen.right += world.seen.right;
    seen.expired += world.seen.expired;
  }
  assert.ok(seen.right > 10 * HISTORIES && seen.expired > 5 * HISTORIES, JSON.stringify(seen));
});

test('a place lives as long as changes are kept, however often the file is opened meanwhile', async (t) => {
  const directory = await temporaryFolder(t);
  const DAY = 24 * 60 * 60_000;
  let now = Date.UTC(2026, 0, 1);
  const options = { wallClock: () => now, changesTtlMs: 7 * DAY };
  const places: { place: FeedPlace; at: number }[] = [];
  for (let day = 0; day < 20; day++, now += DAY) {
    const store = await openDirectory(directory, options);
    const rows = await store.open(ORDERS);
    await rows.insert([BSON.serialize({ _id: 1, day })], 'replace');
    places.push({ place: await feedOf(rows).now(NEVER), at: now });
    await store.close();
  }
  const rows = await (await openFor(t, directory, options)).open(ORDERS);
  for (const { place, at } of places) {
    const reading = feedOf(rows).read(place, { most: 9, waitMs: 0 }, undefined, NEVER);
    if (now - at <= 7 * DAY) assert.equal((await reading).isUpToDate, true);
    else if (now - at > 9 * DAY) await assert.rejects(reading, { code: 'changes-expired' });
    else await reading.catch((error: unknown) => assert.ok(error instanceof AppError));
  }
});

test('a copy of sluice pull is begun anew when the directory of the store is put back to an earlier state', async (t) => {
  const folder = await temporaryFolder(t);
  const directory = join(folder, 'data');
  const earlier = join(folder, 'earlier');
  const file = join(folder, 'rows.csv');
  const settings = { DATA_DIR: directory, LOG_LEVEL: 'warn' };
  const port = await freePort();
  const put = async (ids: readonly number[], text: string) => {
    await writeFile(file, `_id,text\n${ids.map((id) => `${id},${text}\n`).join('')}`);
    await run(['import', file, '--into', 'orders', '--on-conflict', 'replace'], settings);
  };
  const pull = async () => {
    const server = await childServer(t, { ...settings, LOG_LEVEL: 'info', PORT: String(port) });
    const ended = await sluice(
      ['pull', new URL('/orders', server.url).href, '--into', join(folder, 'copy.sqlite')],
      {},
    );
    assert.equal(ended.code, 0, ended.said);
    const lines = (await (await fetch(new URL('/orders/stream', server.url))).text()).trim().split('\n');
    assert.equal(await server.end('SIGTERM'), 0);
    const rows = queryFile(join(folder, 'copy.sqlite'), 'select row from orders order by id').map(([row]) =>
      String(row),
    );
    assert.deepEqual(rows, lines);
    return ended.said;
  };
  await put([1, 2, 3], 'first');
  await put([1, 2, 3], 'second');
  await pull();
  execFileSync('cp', ['-r', directory, earlier]);
  await put([2, 4, 5], 'undone');
  assert.doesNotMatch(await pull(), /starting again/);
  await rm(directory, { recursive: true });
  execFileSync('cp', ['-r', earlier, directory]);
  for (const text of ['third', 'fourth', 'fifth']) await put([1, 3, 6], text);
  assert.match(await pull(), /starting again with an empty copy/);
});
