import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { childServer } from '../support/process/child-server.ts';
import { run } from '../support/process/commands.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { testEnvironment } from '../support/process/server.ts';

const ROWS = process.env.LONG ? 1_000_000 : 100_000;
const MOST_ABOVE_IDLE = 60 * 1024 * 1024;
const LF = 10;

for (const store of ['sqlite', 'mongodb'] as const) {
  test(`one stream of ${ROWS} items from ${store} to a slow reader stays within 60 MB of idle`, async (t) => {
    const uri = store === 'mongodb' ? await testMongo(t) : '';
    if (uri === null) return;
    const { DATA_DIR = '' } = await testEnvironment(t);
    const settings = { MONGODB_URI: uri, DATA_DIR, SAMPLE: 'off' };
    await run(['import', '--generate', String(ROWS)], settings);
    const server = await childServer(t, settings);
    await (await fetch(new URL('/items?limit=1', server.url))).arrayBuffer();
    const idle = server.rss();

    const socket = connect(Number(server.url.port), server.url.hostname);
    socket.write('GET /items/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    let rows = 0;
    let highest = 0;
    let chunks = 0;
    socket.on('data', (chunk) => {
      for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, at + 1)) rows++;
      if (++chunks % 64 !== 0) return;
      highest = Math.max(highest, server.rss());
      socket.pause(); // the socket's own buffers fill, and the server has to wait
      setImmediate(() => socket.resume());
    });
    await once(socket, 'close');
    assert.ok(rows > ROWS, 'all rows were received, with the LFs of the head and the chunk heads');
    const above = highest - idle;
    t.diagnostic(`${Math.round(above / 2 ** 20)} MB above ${Math.round(idle / 2 ** 20)} MB`);
    assert.ok(above <= MOST_ABOVE_IDLE, `${above} bytes above idle`);
  });
}
