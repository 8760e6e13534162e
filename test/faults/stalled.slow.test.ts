import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { load } from '../../bench/load.ts';
import { startProcess } from '../../bench/process.ts';
import { BSON } from '../../src/store/values/bson.ts';
import { kernelWarning } from '../../src/process/kernel-warning.ts';
import { childServer, type ChildServer } from '../support/process/child-server.ts';
import { run } from '../support/process/commands.ts';
import { openPlace } from '../support/store/place.ts';
import { temporaryFolder } from '../support/directory.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { program } from '../support/process/programs.ts';
import type { StoreName } from '../support/process/server.ts';

const LONG = Boolean(process.env.LONG);
const READERS = Number(process.env.READERS ?? (LONG ? 5_000 : 60));
const STALL_SECONDS = LONG ? 60 : 5;
/** The tolerance for the time of a reader's cut, in seconds. A machine with other work needs more. */
const PUNCTUAL = LONG ? 8 : 60;
/** The largest ratio of the time of pages beside stalled readers to that of pages alone. */
const MOST_SLOWDOWN = LONG ? 3 : Infinity;
/** 64 KiB for each reader. With few readers it is the memory that a server keeps after it was busy. Bytes. */
const MOST_HELD = Math.max(READERS * 64 * 1024, 96 * 1024 * 1024);
const ROWS = 20_000;
const PAGE_SECONDS = LONG ? 5 : 0.5;

/** Streams that are read at full speed while pages are requested. */
const FAST = { streams: 8, rows: 1_000_000, mostSlowdown: 5 };
const STALLED_READERS = join(import.meta.dirname, '../support/faults/stalled-readers.py');
const FAST_READERS = join(import.meta.dirname, '../../bench/readers.ts');

const CASES: readonly (readonly [StoreName, 'identity' | 'br'])[] = LONG
  ? [
      ['mongodb', 'identity'],
      ['mongodb', 'br'],
      ['sqlite', 'identity'],
    ]
  : [['mongodb', 'identity']];

interface PreparedStore {
  readonly settings: Record<string, string>;
  readonly openCursors: () => Promise<number>;
}

function rowsOf(coding: string): Uint8Array[] {
  const fill = 'lorem ipsum dolor '.repeat(50);
  const noise = (n: number) => Buffer.from(fill).map((byte, at) => byte ^ ((n * 7919 * (at + 1)) >> 5));
  return Array.from({ length: ROWS }, (_, n) =>
    BSON.serialize({ _id: n, category: 'c', price: n % 100, fill: coding === 'br' ? noise(n) : fill }),
  );
}

/** A store of this kind, with these rows, and closed. Null, and the test skipped, without a mongod. */
async function prepareStore(
  t: TestContext,
  store: StoreName,
  rows: readonly Uint8Array[],
): Promise<PreparedStore | null> {
  const place = store === 'sqlite' ? await temporaryFolder(t) : await testMongo(t);
  if (place === null) return null;
  const opened = await openPlace(place);
  await opened.items.insert(rows, 'fail');
  await opened.close();
  if (store === 'sqlite') return { settings: { DATA_DIR: place }, openCursors: () => Promise.resolve(0) };
  const client = testClient(t, place);
  const ofDatabase = {
    $match: { ns: new RegExp(`^${client.db().databaseName}\\.`), cursor: { $exists: true } },
  };
  const openCursors = async () => {
    const operations = [{ $currentOp: { allUsers: true, idleCursors: true } }, ofDatabase];
    return (await client.db('admin').aggregate(operations).toArray()).length;
  };
  return { settings: { MONGODB_URI: place }, openCursors };
}

/** Starts the readers. Resolves with a function that ends them, once all have read their first bytes and stopped. */
async function stallAll(t: TestContext, python: string, url: URL, coding: string): Promise<() => void> {
  const readers = spawn(python, [STALLED_READERS, url.port, String(READERS), coding], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => readers.kill());
  // A line, because a pipe may give its end by itself.
  const [said] = (await Promise.race([
    once(createInterface({ input: readers.stdout }), 'line'),
    once(readers, 'exit'),
  ])) as [unknown];
  assert.equal(said, 'stalled');
  return () => readers.stdin.end();
}

/** The 99th percentile of the time of pages of 100, eight at a time. Milliseconds. */
async function pageP99({ url }: ChildServer): Promise<number> {
  const page = new URL('/items?limit=100&sort=price_asc', url).href;
  const { latency } = await load({ url: page, connections: 8, until: { seconds: PAGE_SECONDS } });
  return latency.p99;
}

/** Resolves when the memory has stopped growing. A stalled stream releases its batches after a second. */
async function settled(server: ChildServer): Promise<number> {
  let before = 0;
  for (;;) {
    const now = server.rss();
    if (Math.abs(now - before) < 1024 * 1024) return now;
    before = now;
    await pause(1_500);
  }
}

/**
 * How long each reader stalled before its cut, by the log, in seconds, ascending, and how many were not cut as
 * stalled.
 */
async function lifetimes({ log }: ChildServer): Promise<{ lives: number[]; others: number }> {
  const lives: number[] = [];
  let others = 0;
  for await (const { path, end, ms } of log) {
    if (path !== '/items/stream' || end === undefined) continue;
    lives.push((ms ?? NaN) / 1000);
    if (end !== 'stalled') others++;
    if (lives.length === READERS) break;
  }
  return { lives: lives.sort((a, b) => a - b), others };
}

for (const [store, coding] of CASES)
  test(`${READERS} stalled readers (${store}, ${coding}) cost little memory each and no cursor, pages go on, and each is gone after STALL_TIMEOUT`, async (t) => {
    if (LONG)
      assert.equal(kernelWarning(), null, 'the kernel cuts readers itself when 5,000 fill its memory');
    const python = program(t, ['python3'], ['--version']);
    if (python === null) return;
    const prepared = await prepareStore(t, store, rowsOf(coding));
    if (!prepared) return;
    const limits = { STREAM_LIMIT: 'off', RATE_LIMIT: 'off', STALL_TIMEOUT: `${STALL_SECONDS} s` };
    const server = await childServer(t, { ...prepared.settings, ...limits });
    await pageP99(server); // compiled and connected
    const alone = await pageP99(server);
    const idle = server.rss();
    const cursors = await prepared.openCursors();

    const end = await stallAll(t, python, server.url, coding);
    const each = ((await settled(server)) - idle) / READERS;
    const beside = await pageP99(server);
    assert.equal(await prepared.openCursors(), cursors);
    const { lives, others } = await lifetimes(server);
    const first = lives[0] ?? NaN;
    const last = lives.at(-1) ?? NaN;
    end();
    t.diagnostic(
      `${READERS} readers, ${store}, ${coding}: ${Math.round(each / 1024)} KiB each; page p99 ${alone.toFixed(1)} ms alone, ` +
        `${beside.toFixed(1)} ms beside; cut after ${first.toFixed(1)} to ${last.toFixed(1)} s, ${others} of them not as stalled`,
    );
    if (coding === 'identity') assert.ok(each * READERS <= MOST_HELD, `${each} bytes each`);
    assert.equal(others, 0);
    assert.ok(beside <= MOST_SLOWDOWN * alone, 'pages are still served');
    assert.ok(first >= STALL_SECONDS && last <= STALL_SECONDS + PUNCTUAL, 'no reader is cut early or late');
  });

for (const store of ['mongodb', 'sqlite'] satisfies StoreName[])
  test(
    `${store}: pages are served beside ${FAST.streams} streams at full speed, and the streams continue`,
    { skip: LONG ? false : 'LONG=1 is not set' },
    async (t) => {
      const prepared = await prepareStore(t, store, []);
      if (!prepared) return;
      const { settings } = prepared;
      await run(['import', '--generate', String(FAST.rows)], settings);
      const server = await childServer(t, { ...settings, STREAM_LIMIT: 'off', RATE_LIMIT: 'off' });
      await pageP99(server); // compiled and connected
      const alone = await pageP99(server);
      const args = [new URL('/items/stream', server.url).href, String(FAST.streams)];
      const readers = await startProcess({ file: FAST_READERS, args, environment: {} });
      const read = async () => (JSON.parse(await readers.ask('')) as { bytes: number }).bytes;
      const before = await read();
      const beside = await pageP99(server);
      const megabytes = ((await read()) - before) / 1e6;
      await readers.stop();
      t.diagnostic(
        `page p99 ${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside streams of ${(megabytes / PAGE_SECONDS).toFixed(0)} MB/s`,
      );
      assert.ok(beside <= FAST.mostSlowdown * alone, 'pages are not starved');
      assert.ok(megabytes > 1, 'streams continue');
    },
  );
