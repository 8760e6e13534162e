import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { BSON } from '../src/store/bson.ts';
import { crc32 } from '../src/stream/crc32.ts';
import { crc32Combine } from '../src/stream/crc32-combine.ts';
import { catalogue } from './support/catalogue.ts';
import { childServer, type ChildServer } from './support/child-server.ts';
import { LAST_CHUNK, dechunked } from './support/chunked.ts';
import { fetchUntilCut, startCutter } from './support/cutter.ts';
import { testMongoStore } from './support/mongo.ts';
import { serverOn } from './support/server.ts';

/** Of each kind of cut; a server that is killed has to be started again, which takes a second or two. */
const CUTS = process.env.LONG ? 500 : 24;
const KILLS = Number(process.env.KILLS ?? (process.env.LONG ? 170 : 2));
/** In the long form so many that a checkpoint is behind some pieces; the rest go on behind their last row. */
const ROWS = process.env.LONG ? 40_000 : 4_000;
const CASES = ['id_asc', 'price_asc', 'price_desc'].flatMap((sort) => [
  `sort=${sort}`,
  `sort=${sort}&category=music`,
]);

interface Tally {
  readonly cursor: string | null;
  readonly rows: number;
  readonly bytes: number;
  readonly crc32: string;
}

/** What is kept of an answer: the row lines up to its last control line, or all whole ones where there is none. */
interface Piece {
  readonly lines: Buffer;
  readonly rows: number;
  readonly tally: Tally | null;
  readonly ended: boolean;
  /** Of the next request: behind the last control line, or the last row; null when nothing is kept. */
  readonly next: string | null;
}

function kept(bytes: Buffer, query: string): Piece {
  const lines: Buffer[] = [];
  let proved: { tally: Tally; ended: boolean; rows: number } | null = null;
  for (let at = 0, next = bytes.indexOf(10); next >= 0; at = next + 1, next = bytes.indexOf(10, at)) {
    const line = bytes.subarray(at, next + 1);
    if (line.toString('latin1', 0, 6) === '{"id":') {
      lines.push(line);
      continue;
    }
    const control = JSON.parse(line.toString()) as { checkpoint?: Tally; end?: Tally };
    const tally = control.checkpoint ?? control.end;
    if (tally) proved = { tally, ended: control.end !== undefined, rows: lines.length };
  }
  const { tally = null, ended = false, rows = lines.length } = proved ?? {};
  const last = lines[rows - 1];
  const behindRow = last ? `&after=${encodeURIComponent(placeOf(last, query))}` : null;
  const next = tally ? `&cursor=${String(tally.cursor)}` : behindRow;
  return { lines: Buffer.concat(lines.slice(0, rows)), rows, tally, ended, next };
}

/** A row as `after` names it. */
function placeOf(line: Buffer, query: string): string {
  const { id, price } = JSON.parse(line.toString()) as { id: string | number; price: number };
  return query.startsWith('sort=price') ? `${price},${id}` : String(id);
}

/** How the pieces of all pulls went on. */
interface Joins {
  cuts: number;
  checkpoints: number;
  rows: number;
}

/**
 * Pulls a stream through cuts: keeps what came whole, goes on behind it, and combines the pieces' CRCs. `get` brings what came
 * of the next request, cut or whole.
 */
async function pull(
  query: string,
  joins: Joins,
  get: (from: string) => Promise<{ bytes: Buffer; whole: boolean }>,
) {
  const joined: Buffer[] = [];
  let [from, crc] = ['', 0];
  for (;;) {
    const { bytes, whole } = await get(from);
    const { lines, rows, tally, ended, next } = kept(bytes, query);
    assert.equal(ended, whole, 'a stream that ends cleanly says so, and no other does');
    if (tally) {
      assert.equal(rows, tally.rows);
      assert.equal(lines.length, tally.bytes);
      assert.equal(crc32(lines), parseInt(tally.crc32, 16));
    }
    joined.push(lines);
    crc = crc32Combine(crc, crc32(lines), lines.length);
    if (ended) return { joined: Buffer.concat(joined), crc };
    joins.cuts++;
    if (next === null) continue;
    joins[tally ? 'checkpoints' : 'rows']++;
    from = next;
  }
}

/** Pulls each stream again and again until it was to be cut so many times, and checks each file. `get` is told whether to cut. */
async function pullAll(
  t: TestContext,
  uncut: ReadonlyMap<string, Buffer>,
  cuts: number,
  get: (path: string, cutAfter: number | null) => Promise<{ bytes: Buffer; whole: boolean }>,
): Promise<void> {
  const joins: Joins = { cuts: 0, checkpoints: 0, rows: 0 };
  let files = 0;
  for (const [query, whole] of uncut)
    for (let left = cuts / uncut.size; left > 0; files++) {
      const { joined, crc } = await pull(query, joins, (from) => {
        const path = `/items/stream?${query}&checkpoints=true${from}`;
        return get(path, left-- > 0 ? 1 + Math.floor(Math.random() * 0.6 * whole.length) : null);
      });
      assert.equal(joined.length, whole.length, query);
      assert.equal(crc32(joined), crc32(whole), query);
      assert.equal(crc, crc32(whole), `${query}: combined of the pieces'`);
    }
  t.diagnostic(
    `${files} files of ${joins.cuts} cut pieces: ${joins.checkpoints} went on behind a checkpoint, ${joins.rows} behind a row`,
  );
  assert.ok(joins.cuts > cuts / 4, `${joins.cuts} cuts`);
  assert.ok(joins.rows > 0 && (!process.env.LONG || joins.checkpoints > 0));
}

/** A collection, and what its streams are uncut. */
async function prepare(t: TestContext, cases: readonly string[], rowBytes: number) {
  const opened = await testMongoStore(t);
  if (!opened) return null;
  const filler = 'x'.repeat(rowBytes);
  const rows = catalogue(ROWS).map(({ document }) => BSON.serialize({ ...document, filler }));
  await opened.store.items.insert(rows, 'fail');
  const settings = { MONGODB_URI: opened.uri, RATE_LIMIT: 'off' };
  const server = await serverOn(t, settings);
  const uncut = new Map<string, Buffer>();
  for (const query of cases)
    uncut.set(query, (await fetchUntilCut(`${server.url}/items/stream?${query}`)).bytes);
  return { url: new URL(server.url), settings, uncut };
}

/** Takes so many bytes of an answer, then breaks the connection off: as a client does that dies, with a reset. */
function takeAndLeave(url: URL, path: string, most: number): Promise<{ bytes: Buffer; whole: boolean }> {
  return new Promise((resolve) => {
    const socket = connect(Number(url.port), url.hostname);
    const pieces: Buffer[] = [];
    let [taken, ended] = [0, false];
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`);
    socket.on('data', (piece: Buffer) => {
      pieces.push(piece);
      taken += piece.length;
      ended = piece.subarray(-7).toString('latin1') === LAST_CHUNK;
      if (ended || taken >= most) socket.resetAndDestroy();
    });
    socket.on('close', () => {
      const answer = Buffer.concat(pieces).subarray(0, ended ? undefined : most);
      resolve({ bytes: dechunked(answer), whole: ended });
    });
  });
}

test(`${CUTS} times a client breaks off at any byte and goes on: what it joins has the CRC of the whole`, async (t) => {
  const prepared = await prepare(t, CASES, 150);
  if (!prepared) return;
  const { url, uncut } = prepared;
  await pullAll(t, uncut, CUTS, (path, cutAfter) => takeAndLeave(url, path, cutAfter ?? Infinity));
});

test(`${CUTS} times a proxy cuts at any byte and the client goes on: what it joins has the CRC of the whole`, async (t) => {
  const prepared = await prepare(t, CASES, 150);
  if (!prepared) return;
  const { url, uncut } = prepared;
  const cutter = await startCutter(t, url.origin);
  await pullAll(t, uncut, CUTS, (path, cutAfter) => {
    cutter.nextAfter = () => cutAfter ?? Infinity;
    return fetchUntilCut(cutter.url + path);
  });
});

test(`${KILLS} times the server is killed at any byte and the client goes on: what it joins has the CRC of the whole`, async (t) => {
  const cases = process.env.LONG ? CASES : CASES.filter((_, n) => n % 3 === 0);
  const prepared = await prepare(t, cases, process.env.LONG ? 600 : 2_000); // more than a socket's buffers take: what is in them still comes
  if (!prepared) return;
  const { settings, uncut } = prepared;
  const start = () => childServer(t, settings);
  let server = await start();
  await pullAll(t, uncut, KILLS, async (path, cutAfter) => {
    if (cutAfter === null) return fetchUntilCut(new URL(path, server.url).href);
    const dying = server;
    const next = start(); // the next one is on its way: to start takes longer than all else here
    const answer = await takeAndKill(dying, path, cutAfter);
    server = await next;
    return answer;
  });
});

/** Takes so many bytes of an answer, then SIGKILLs the server; what it had sent before still comes. */
async function takeAndKill(server: ChildServer, path: string, most: number) {
  const { hostname, port, host } = server.url;
  const pieces: Buffer[] = [];
  const ended = await new Promise<boolean>((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let [taken, last, killed] = [0, '', false];
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    const kill = () => {
      killed = true;
      server.end('SIGKILL').catch(reject);
    };
    socket.on('data', (piece: Buffer) => {
      pieces.push(piece);
      taken += piece.length;
      last = piece.subarray(-7).toString('latin1');
      if (last === LAST_CHUNK) socket.destroy();
      else if (taken >= most && !killed) kill();
    });
    socket.on('error', () => undefined); // a killed server's connections are reset
    socket.on('close', () => {
      if (!killed) kill();
      resolve(last === LAST_CHUNK);
    });
  });
  return { bytes: dechunked(Buffer.concat(pieces)), whole: ended };
}
