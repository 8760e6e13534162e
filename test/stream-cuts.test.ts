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
const ROWS = 4_000;
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

/** What of a piece is proved by its last control line: its row lines, and whether it is the end. */
interface Piece {
  readonly lines: Buffer;
  readonly tally: Tally | null;
  readonly ended: boolean;
}

function proved(bytes: Buffer): Piece {
  let piece: Piece = { lines: Buffer.alloc(0), tally: null, ended: false };
  const lines: Buffer[] = [];
  for (let at = 0, next = bytes.indexOf(10); next >= 0; at = next + 1, next = bytes.indexOf(10, at)) {
    const line = bytes.subarray(at, next + 1);
    if (line.toString('latin1', 0, 6) === '{"id":') {
      lines.push(line);
      continue;
    }
    const control = JSON.parse(line.toString()) as { checkpoint?: Tally; end?: Tally };
    const tally = control.checkpoint ?? control.end;
    if (tally) piece = { lines: Buffer.concat(lines), tally, ended: control.end !== undefined };
  }
  return piece;
}

/**
 * Pulls a stream through cuts: keeps what is proved, goes on from the last cursor, and combines the pieces' CRCs. `get` brings
 * what came of the next request, cut or whole.
 */
async function pull(get: (from: string) => Promise<{ bytes: Buffer; whole: boolean }>) {
  const kept: Buffer[] = [];
  let [from, crc, rows, pieces] = ['', 0, 0, 0];
  for (;;) {
    const { bytes, whole } = await get(from);
    const { lines, tally, ended } = proved(bytes);
    assert.equal(ended, whole, 'a stream that ends cleanly says so, and no other does');
    pieces++;
    if (!tally) continue;
    assert.equal(lines.length, tally.bytes);
    assert.equal(crc32(lines), parseInt(tally.crc32, 16));
    kept.push(lines);
    crc = crc32Combine(crc, parseInt(tally.crc32, 16), lines.length);
    rows += tally.rows;
    if (ended) return { joined: Buffer.concat(kept), crc, rows, pieces };
    from = `&cursor=${String(tally.cursor)}`;
  }
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

function pathOf(query: string, from: string): string {
  return `/items/stream?${query}&checkpoints=true${from}`;
}

function assertWhole(result: Awaited<ReturnType<typeof pull>>, whole: Buffer, query: string): void {
  assert.equal(result.joined.length, whole.length, query);
  assert.equal(crc32(result.joined), crc32(whole), query);
  assert.equal(result.crc, crc32(whole), `${query}: combined of the pieces'`);
}

/** A byte of the stream at random; the share of cuts that a case gets makes them fall all over it. */
function anywhere(whole: Buffer, cuts: number): number {
  return 1 + Math.floor((Math.random() * 2 * whole.length * CASES.length) / cuts);
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
  let cuts = 0;
  for (const [query, whole] of uncut) {
    let left = CUTS / CASES.length;
    const result = await pull((from) =>
      takeAndLeave(url, pathOf(query, from), left-- > 0 ? anywhere(whole, CUTS) : Infinity),
    );
    assertWhole(result, whole, query);
    cuts += result.pieces - 1;
  }
  t.diagnostic(`${cuts} pieces were cut`);
  assert.ok(cuts > CUTS / 4);
});

test(`${CUTS} times a proxy cuts at any byte and the client goes on: what it joins has the CRC of the whole`, async (t) => {
  const prepared = await prepare(t, CASES, 150);
  if (!prepared) return;
  const { url, uncut } = prepared;
  const cutter = await startCutter(t, url.origin);
  let cuts = 0;
  for (const [query, whole] of uncut) {
    let left = CUTS / CASES.length;
    const result = await pull((from) => {
      const most = left-- > 0 ? anywhere(whole, CUTS) : Infinity;
      cutter.nextAfter = () => most;
      return fetchUntilCut(cutter.url + pathOf(query, from));
    });
    assertWhole(result, whole, query);
    cuts += result.pieces - 1;
  }
  t.diagnostic(`${cuts} pieces were cut`);
  assert.ok(cuts > CUTS / 4);
});

test(`${KILLS} times the server is killed at any byte and the client goes on: what it joins has the CRC of the whole`, async (t) => {
  const cases = process.env.LONG ? CASES : CASES.filter((_, n) => n % 3 === 0);
  const prepared = await prepare(t, cases, 2_000); // more than a socket's buffers take: what is in them still comes
  if (!prepared) return;
  const { settings, uncut } = prepared;
  const start = () => childServer(t, settings);
  let server = await start();
  let cuts = 0;
  for (const [query, whole] of uncut) {
    let left = KILLS / cases.length;
    const result = await pull(async (from) => {
      if (left-- <= 0) return fetchUntilCut(new URL(pathOf(query, from), server.url).href);
      const dying = server;
      const next = start(); // the next one is on its way: to start takes longer than all else here
      const answer = await takeAndKill(dying, pathOf(query, from), Math.random() * 0.6 * whole.length);
      server = await next;
      return answer;
    });
    assertWhole(result, whole, query);
    cuts += result.pieces - 1;
  }
  t.diagnostic(`${cuts} pieces were cut`);
  assert.ok(cuts > 0);
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
