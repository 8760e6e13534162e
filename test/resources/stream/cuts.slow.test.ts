import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { crc32 } from '../../../src/pipeline/crc32.ts';
import { crc32Combine } from '../../../src/pipeline/crc32-combine.ts';
import { catalogue } from '../../support/resources/catalogue.ts';
import { childServer } from '../../support/process/child-server.ts';
import { LAST_CHUNK, dechunked } from '../../support/engine/chunked.ts';
import { fetchUntilCut, startCutter } from '../../support/faults/cutter.ts';
import { serverOn, STORES, type StoreName } from '../../support/process/server.ts';
import { provedIn } from '../../support/resources/proved.ts';
import { filled } from '../../support/resources/resources.ts';

const CUTS = process.env.LONG ? 500 : 16;
/** A killed server takes a second or two to restart. Each kill cuts all running streams. */
const KILLED = Number(process.env.KILLED ?? (process.env.LONG ? 500 : 4));
/** Enough for a checkpoint in the first half of them. Pieces without one continue after their last row. */
const MANY = 30_000;
const CASES = ['id_asc', 'id_desc', 'price_asc', 'price_desc'].flatMap((sort) => [
  `sort=${sort}`,
  `sort=${sort}&category=music`,
]);

/** The kept part of an answer: its lines up to the last control line, or all whole ones when there is none. */
interface Piece {
  readonly lines: Buffer;
  readonly isProved: boolean;
  readonly ended: boolean;
  /** Where the next request continues: after the last control line or the last row. Null when nothing is kept. */
  readonly next: string | null;
}

function kept(bytes: Buffer, query: string): Piece {
  const { rows, tally, ended } = provedIn(bytes);
  const own = rows.slice(0, tally?.rows);
  const last = own.at(-1);
  const behindRow = last ? `&after=${encodeURIComponent(placeOf(last, query))}` : null;
  const next = tally ? `&cursor=${String(tally.cursor)}` : behindRow;
  return { lines: Buffer.concat(own), isProved: tally !== null, ended, next };
}

/** A row in the form of `after`. */
function placeOf(line: Buffer, query: string): string {
  const { id, price } = JSON.parse(line.toString()) as { id: string | number; price: number };
  return query.startsWith('sort=price') ? `${price},${id}` : String(id);
}

/** The number of files, their cuts, and how they continued. */
class Joins {
  files = 0;
  cuts = 0;
  checkpoints = 0;
  rows = 0;
}

/**
 * Pulls a stream through cuts: keeps the whole rows, continues after them, and combines the pieces' CRCs. `get`
 * returns the received part of the next answer, cut or whole.
 */
async function pull(
  query: string,
  joins: Joins,
  get: (from: string) => Promise<{ bytes: Buffer; whole: boolean }>,
) {
  const joined: Buffer[] = [];
  let from = '';
  let crc = 0;
  for (;;) {
    const { bytes, whole } = await get(from);
    const { lines, isProved, ended, next } = kept(bytes, query);
    assert.equal(ended, whole, 'only a stream that ends cleanly has an end line');
    joined.push(lines);
    crc = crc32Combine(crc, crc32(lines), lines.length);
    if (ended) return { joined: Buffer.concat(joined), crc };
    joins.cuts++;
    if (next === null) continue;
    joins[isProved ? 'checkpoints' : 'rows']++;
    from = next;
  }
}

/** An answer, cut after this many bytes, or not at all. */
type Get = (path: string, cutAfter: number | null) => Promise<{ bytes: Buffer; whole: boolean }>;

/** Pulls a stream again and again until this many cuts were made, the first one in its middle, and checks each file. */
async function pullAgain(
  [query, whole]: [string, Buffer],
  cuts: number,
  joins: Joins,
  get: Get,
): Promise<void> {
  for (let left = cuts; left > 0; joins.files++) {
    const { joined, crc } = await pull(query, joins, (from) => {
      const path = `/items/stream?${query}&checkpoints=true${from}`;
      const part = left === cuts ? 0.5 : 0.6 * Math.random();
      return get(path, left-- > 0 ? 1 + Math.floor(part * whole.length) : null);
    });
    assert.equal(joined.length, whole.length, query);
    assert.equal(crc32(joined), crc32(whole), query);
    assert.equal(crc, crc32(whole), `${query}: combined of the pieces'`);
  }
}

/** Reports the number of cuts, and checks that there were many and that the ways to continue occurred. */
function assertCuts(t: TestContext, joins: Joins, wanted: number, hasCheckpoints: boolean): void {
  const { files, cuts, checkpoints, rows } = joins;
  t.diagnostic(
    `${files} files; ${cuts} streams were cut, ${checkpoints} went on behind a checkpoint, ${rows} behind a row`,
  );
  assert.ok(cuts > wanted / 4);
  assert.ok(rows > 0 && (!hasCheckpoints || checkpoints > 0));
}

/** A set on a store, and its uncut streams. */
async function prepare(
  t: TestContext,
  store: StoreName,
  cases: readonly string[],
  rows: number,
  rowBytes: number,
) {
  const place = await filled(t, store, []);
  if (!place) return null;
  const settings = { ...place, EXPOSE: '', RATE_LIMIT: 'off' };
  const server = await serverOn(t, settings);
  const filler = 'x'.repeat(rowBytes);
  await server.insert(catalogue(rows).map(({ document }) => ({ ...document, filler })));
  const uncut = new Map<string, Buffer>();
  for (const query of cases)
    uncut.set(query, (await fetchUntilCut(`${server.url}/items/stream?${query}`)).bytes);
  return { url: new URL(server.url), settings, uncut };
}

/** Reads an answer until its end or cut. Calls `strike` once, after this many bytes. */
function takeUntil(
  url: URL,
  path: string,
  most: number,
  strike: () => void,
): Promise<{ bytes: Buffer; whole: boolean }> {
  return new Promise((resolve) => {
    const socket = connect(Number(url.port), url.hostname);
    const pieces: Buffer[] = [];
    let taken = 0;
    let tail = '';
    let struck = false;
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`);
    socket.on('data', (piece: Buffer) => {
      pieces.push(piece);
      taken += piece.length;
      tail = (tail + piece.subarray(-LAST_CHUNK.length).toString('latin1')).slice(-LAST_CHUNK.length);
      if (tail === LAST_CHUNK) socket.destroy();
      else if (taken >= most && !struck) {
        struck = true;
        strike();
      }
    });
    socket.on('error', () => undefined); // a killed server's connections are reset
    socket.on('close', () => {
      resolve({ bytes: dechunked(Buffer.concat(pieces)), whole: tail === LAST_CHUNK });
    });
  });
}

for (const store of STORES)
  test(`${store}: ${CUTS} times a proxy cuts at any byte and the client continues, and the joined pieces have the CRC of the whole`, async (t) => {
    const prepared = await prepare(t, store, CASES, MANY, 150);
    if (!prepared) return;
    const { url, uncut } = prepared;
    const cutter = await startCutter(t, url.origin);
    const joins = new Joins();
    for (const entry of uncut)
      await pullAgain(entry, CUTS / CASES.length, joins, (path, cutAfter) => {
        cutter.nextAfter = () => cutAfter ?? Infinity;
        return fetchUntilCut(cutter.url + path);
      });
    assertCuts(t, joins, CUTS, true);
  });

test(`the server is killed until ${KILLED} streams were cut at any byte, and the joined pieces of the clients have the CRC of the whole`, async (t) => {
  const cases = KILLED < CASES.length ? CASES.filter((_, n) => n % 3 === 0) : CASES;
  const [rows, rowBytes] = process.env.LONG ? [40_000, 600] : [4_000, 2_000];
  const prepared = await prepare(t, 'mongodb', cases, rows, rowBytes); // more than a socket's buffers hold, because those bytes still arrive
  if (!prepared) return;
  const { settings, uncut } = prepared;
  const start = () => childServer(t, settings);
  let server = start();
  let next = start(); // starting takes longer than everything else here
  const kills: Promise<unknown>[] = [];
  const joins = new Joins();
  const get: Get = async (path, cutAfter) => {
    const mine = server;
    const dying = await mine;
    return takeUntil(dying.url, path, cutAfter ?? Infinity, () => {
      if (mine !== server) return; // the reader of another stream killed it first
      [server, next] = [next, start()];
      kills.push(dying.end('SIGKILL'));
    });
  };
  await Promise.all(Array.from(uncut, (entry) => pullAgain(entry, KILLED / cases.length, joins, get)));
  await Promise.all([...kills, next]);
  t.diagnostic(`${kills.length} kills`);
  assertCuts(t, joins, KILLED, rows > MANY);
});
