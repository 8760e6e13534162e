import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { catalogue } from '../../support/resources/catalogue.ts';
import { chunksOf, LAST_CHUNK } from '../../support/engine/chunked.ts';
import { request } from '../../support/engine/raw.ts';
import { serverOn, type EngineName } from '../../support/process/server.ts';

const ROWS = 30_000;

/** The sizes of a stream's chunks. */
async function chunkSizes(port: number, coding: string): Promise<number[]> {
  const socket = connect(port, '127.0.0.1');
  socket.write(request('/items/stream', [`Accept-Encoding: ${coding}`]));
  const pieces: Buffer[] = [];
  for await (const piece of socket as AsyncIterable<Buffer>) {
    pieces.push(piece);
    if (Buffer.concat(pieces.slice(-2)).toString('latin1').endsWith(LAST_CHUNK)) break;
  }
  const sizes = chunksOf(Buffer.concat(pieces)).map(({ length }) => length);
  assert.equal(sizes.pop(), 0, 'the stream ended cleanly');
  return sizes;
}

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`behind ${engine}, streams are sent in large chunks in any coding`, async (t) => {
    const server = await serverOn(t, { MONGODB_URI: '', HTTP_ENGINE: engine });
    let state = 1;
    const noise = () => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0).toString(36);
    const text = () => Array.from({ length: 30 }, noise).join(' ');
    await server.insert(catalogue(ROWS).map(({ document }) => ({ ...document, text: text() })));
    for (const coding of ['identity', 'gzip', 'br']) {
      const sizes = await chunkSizes(Number(new URL(server.url).port), coding);
      const total = sizes.reduce((sum, size) => sum + size, 0);
      const small = sizes.filter((size) => size < 1024).length;
      const said = `${coding}: ${sizes.length} chunks, mean ${Math.round(total / sizes.length)}, ${small} below 1 KiB`;
      t.diagnostic(said);
      assert.ok(total > 2e6, said);
      assert.ok(total / sizes.length >= 12_000, said);
      assert.ok(small / sizes.length <= 0.15, said);
    }
  });
