import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { catalogue } from './support/catalogue.ts';
import { testServer, type EngineName } from './support/server.ts';

const READERS = process.env.LONG ? 200 : 48;
const DECODERS = { identity: (body: Buffer) => body, gzip: gunzipSync, br: brotliDecompressSync };

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
async function readSlowly(url: URL, coding: string, seed: number): Promise<Buffer> {
  const random = randomFrom(seed);
  const socket = connect(Number(url.port), url.hostname);
  socket.write(
    `GET /items/stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept-Encoding: ${coding}\r\n\r\n`,
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

describe('slow readers', () => {
  for (const engine of ['uws', 'node'] satisfies EngineName[]) {
    test(`${READERS} readers with random stalls all get the right bytes behind ${engine}`, async (t) => {
      const server = await testServer(t, 'lmdb', engine, { STREAM_LIMIT: 'off' });
      if (!server) return;
      const fill = 'lorem ipsum dolor '.repeat(15);
      await server.insert(catalogue(12_000).map((row) => ({ ...row.document, fill })));
      const response = await server.get('/items/stream', { 'accept-encoding': 'identity' });
      const whole = Buffer.from(await response.arrayBuffer());
      const expected = createHash('sha256').update(whole).digest('hex');
      assert.ok(whole.length > 4_000_000);
      const codings = Object.keys(DECODERS) as (keyof typeof DECODERS)[];
      const url = new URL(server.url);
      await Promise.all(
        Array.from({ length: READERS }, async (_, i) => {
          const coding = codings[i % codings.length] ?? 'identity';
          const body = DECODERS[coding](await readSlowly(url, coding, i + 1));
          assert.equal(createHash('sha256').update(body).digest('hex'), expected, `reader ${i}, ${coding}`);
        }),
      );
    });
  }
});
