import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { Document } from '../src/store/bson.ts';
import { catalogue } from './support/catalogue.ts';
import { testServer, type EngineName } from './support/server.ts';

const READERS = process.env.LONG ? 200 : 48;
const RUNS = Number(process.env.RUNS ?? (process.env.LONG ? 20 : 1));
/** Of a stream of NDJSON, at least: more than the kernel's buffers take together with what compression leaves of it. */
const BYTES = process.env.LONG ? 8_000_000 : 4_000_000;
const ROWS = 12_000;
const FORMATS = ['ndjson', 'json', 'csv'] as const;
const DECODERS = { identity: (body: Buffer) => body, gzip: gunzipSync, br: brotliDecompressSync };
const CODINGS = Object.keys(DECODERS) as (keyof typeof DECODERS)[];

/** A small deterministic generator, so that a failure can be repeated: xorshift32. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed * 2_654_435_769 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** Reads an answer off a raw socket with random stalls of some turns of the event loop; gives the decoded chunks. */
async function readSlowly(url: URL, format: string, coding: string, seed: number): Promise<Buffer> {
  const random = randomFrom(seed);
  const socket = connect(Number(url.port), url.hostname);
  socket.write(
    `GET /items/stream?format=${format} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept-Encoding: ${coding}\r\n\r\n`,
  );
  const chunks: Buffer[] = [];
  for await (const chunk of socket) {
    chunks.push(chunk as Buffer);
    const stall = random(8) === 0 ? random(400) : 0;
    for (let turn = 0; turn < stall; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  const answer = Buffer.concat(chunks);
  const head = answer.indexOf('\r\n\r\n');
  assert.match(answer.subarray(0, head).toString('latin1'), /^HTTP\/1\.1 200 /);
  return dechunk(answer.subarray(head + 4));
}

/** Decodes chunked framing strictly; a body without its last chunk is a cut. */
function dechunk(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; ;) {
    const line = body.indexOf('\r\n', at);
    const size = parseInt(body.toString('latin1', at, line), 16);
    assert.ok(line > 0 && Number.isInteger(size), 'a chunk head stands where one must');
    if (size === 0) return Buffer.concat(parts);
    parts.push(body.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
}

/** Rows of which no compression makes half of the bytes smaller. */
function rows(): Document[] {
  const random = randomFrom(1);
  const half = Math.ceil(BYTES / ROWS / 2);
  const fill = 'x'.repeat(half);
  return catalogue(ROWS).map(({ document }) => {
    const noise = Buffer.alloc(half);
    for (let at = 0; at < half; at++) noise[at] = 32 + random(95);
    return { ...document, noise: noise.toString(), fill };
  });
}

/** Of ten readers: what is hard is the way of bytes to a socket, what costs time is compression. */
const SHARES = { identity: 8, gzip: 1, br: 1 };
const WAYS = CODINGS.flatMap((coding) =>
  FORMATS.flatMap((format) => Array.from({ length: SHARES[coding] }, () => ({ format, coding }))),
);

describe('slow readers', () => {
  for (const engine of ['uws', 'node'] satisfies EngineName[]) {
    test(`${READERS} readers with random stalls all get the right bytes behind ${engine}, ${RUNS} times`, async (t) => {
      const server = await testServer(t, 'lmdb', engine, { STREAM_LIMIT: 'off', RATE_LIMIT: 'off' });
      if (!server) return;
      await server.insert(rows());
      const expected = new Map<string, Buffer>();
      for (const format of FORMATS) {
        const response = await server.get(`/items/stream?format=${format}`, {
          'accept-encoding': 'identity',
        });
        const whole = Buffer.from(await response.arrayBuffer());
        assert.ok(whole.length > BYTES);
        expected.set(format, whole);
      }
      const url = new URL(server.url);
      for (let run = 0; run < RUNS; run++)
        await Promise.all(
          Array.from({ length: READERS }, async (_, i) => {
            const { format, coding } = WAYS[(i * 7) % WAYS.length] ?? assert.fail();
            const body = DECODERS[coding](await readSlowly(url, format, coding, run * READERS + i + 1));
            assert.ok(expected.get(format)?.equals(body), `run ${run}, reader ${i}: ${format}, ${coding}`);
          }),
        );
    });
  }
});
