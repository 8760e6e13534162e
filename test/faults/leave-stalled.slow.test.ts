import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { stalledStreams } from '../support/telemetry/metrics.ts';
import { request } from '../support/engine/raw.ts';
import { serverOn, type EngineName } from '../support/process/server.ts';

const READERS = 4;
/** Incompressible rows of 8 kB. They exceed the kernel's buffers for any one stream. */
const ROWS = 1_500;
const NOISE = randomBytes(1024 * 1024).toString('base64');

function documents() {
  return Array.from({ length: ROWS }, (_, n) => {
    const at = (n * 8_000) % 1_000_000;
    return { _id: n, category: 'c', price: n % 100, filler: NOISE.slice(at, at + 8_000) };
  });
}

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`behind ${engine}, readers that leave while they stall leave nothing behind, in any coding`, async (t) => {
    const limits = { RATE_LIMIT: 'off', STREAM_LIMIT: 'off' };
    const server = await serverOn(t, { MONGODB_URI: '', HTTP_ENGINE: engine, ...limits });
    await server.insert(documents());
    const port = Number(new URL(server.url).port);
    for (const coding of ['identity', 'gzip', 'br']) {
      const readers: Socket[] = [];
      for (let n = 0; n < READERS; n++) {
        const socket = connect(port, '127.0.0.1'); // it reads nothing until it is resumed
        t.after(() => socket.destroy());
        socket.write(request('/items/stream', [`Accept-Encoding: ${coding}`]));
        readers.push(socket);
      }
      await stalledStreams(server.url, (streams) => streams === READERS);
      readers.forEach((reader, n) => (n % 2 === 0 ? reader.destroy() : reader.resetAndDestroy()));
      await stalledStreams(server.url, (streams) => streams === 0);
      await server.released();
    }
  });
