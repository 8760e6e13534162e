import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { childServer, type ChildServer } from './support/child-server.ts';
import { testMongo } from './support/mongod.ts';

const LONG = Boolean(process.env.LONG);
const READERS = Number(process.env.READERS ?? (LONG ? 5_000 : 60));
const STALL_SECONDS = LONG ? 60 : 5;
/** 64 KiB each; of few readers it is what a server keeps for itself when it has once been busy. Bytes. */
const MOST_HELD = Math.max(READERS * 64 * 1024, 96 * 1024 * 1024);
const ROWS = 20_000;
const AT_ONCE = 50;
const PAGES = LONG ? 400 : 100;

/** A reader that has taken the first bytes and takes no more. */
async function stall(url: URL, coding: string): Promise<Socket> {
  const socket = connect(Number(url.port), url.hostname);
  const head = `GET /items/stream HTTP/1.1\r\nHost: ${url.host}\r\nAccept-Encoding: ${coding}\r\n\r\n`;
  socket.write(head);
  const [first] = (await once(socket, 'data')) as [Buffer];
  assert.match(first.toString('latin1'), /^HTTP\/1\.1 200 /);
  socket.pause();
  socket.on('error', () => undefined); // the cut is a reset, and seen here when it is read again only
  return socket;
}

async function stallAll(url: URL, coding: string): Promise<Socket[]> {
  const readers: Socket[] = [];
  while (readers.length < READERS) {
    const some = Math.min(AT_ONCE, READERS - readers.length);
    readers.push(...(await Promise.all(Array.from({ length: some }, () => stall(url, coding)))));
  }
  return readers;
}

/** The 99th percentile of the times that pages of 100 take, eight at a time. Milliseconds. */
async function pageP99(url: URL): Promise<number> {
  const times: number[] = [];
  const ask = async () => {
    while (times.length < PAGES) {
      const begun = performance.now();
      times.push(Infinity);
      const slot = times.length - 1;
      await (await fetch(new URL('/items?limit=100&sort=price_asc', url))).arrayBuffer();
      times[slot] = performance.now() - begun;
    }
  };
  await Promise.all(Array.from({ length: 8 }, ask));
  return times.sort((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? Infinity;
}

/** Resolves when the memory has stopped growing, and no longer does so: what stalls is given back after a second. */
async function settled(server: ChildServer): Promise<number> {
  for (let [before, now] = [0, server.rss()]; ; before = now, now = server.rss()) {
    if (Math.abs(now - before) < 1024 * 1024) return now;
    await pause(1_500);
  }
}

function openFiles({ pid }: ChildServer): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

async function openCursors(client: MongoClient): Promise<number> {
  const { metrics } = (await client.db('admin').command({ serverStatus: 1 })) as {
    metrics: { cursor: { open: { total: number } } };
  };
  return metrics.cursor.open.total;
}

for (const coding of LONG ? ['identity', 'br'] : ['identity']) {
  test(`${READERS} stalled readers (${coding}) cost little memory each and no cursor, pages go on, and each is gone after STALL_TIMEOUT`, async (t) => {
    const uri = await testMongo(t);
    if (uri === null) return;
    const client = new MongoClient(uri);
    t.after(() => client.close());
    const fill = 'lorem ipsum dolor '.repeat(50);
    const documents = Array.from({ length: ROWS }, (_, n) => ({
      _id: n as never,
      category: 'c',
      price: n % 100,
      fill: coding === 'br' ? Buffer.from(fill).map((byte, at) => byte ^ ((n * 7919 * (at + 1)) >> 5)) : fill,
    }));
    await client.db().collection('items').insertMany(documents);
    const server = await childServer(t, {
      MONGODB_URI: uri,
      STREAM_LIMIT: 'off',
      RATE_LIMIT: 'off',
      STALL_TIMEOUT: `${STALL_SECONDS} s`,
    });
    await pageP99(server.url); // compiled and connected
    const alone = await pageP99(server.url);
    const idle = server.rss();
    const cursors = await openCursors(client);

    const readers = await stallAll(server.url, coding);
    const begun = performance.now();
    const each = ((await settled(server)) - idle) / READERS;
    const beside = await pageP99(server.url);
    assert.equal(await openCursors(client), cursors);
    const held = openFiles(server);
    const seconds = () => (performance.now() - begun) / 1000;
    while (openFiles(server) > held - READERS / 100 && seconds() < 3 * STALL_SECONDS) await pause(100);
    const first = seconds();
    while (openFiles(server) > held - READERS && seconds() < 3 * STALL_SECONDS) await pause(100);
    const last = seconds();
    for (const reader of readers) reader.destroy();
    t.diagnostic(
      `${READERS} readers, ${coding}: ${Math.round(each / 1024)} KiB each; page p99 ${alone.toFixed(1)} ms alone, ` +
        `${beside.toFixed(1)} ms beside; cut after ${first.toFixed(1)} to ${last.toFixed(1)} s`,
    );
    if (coding === 'identity') assert.ok(each * READERS <= MOST_HELD, `${each} bytes each`);
  });
}
