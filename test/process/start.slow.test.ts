import assert from 'node:assert/strict';
import { test } from 'node:test';
import { childServer } from '../support/child-server.ts';

for (const [HOST, WORKERS, host] of [
  ['127.0.0.1', '1', '127.0.0.1'],
  ['127.0.0.1', '2', '127.0.0.1'],
  ['0.0.0.0', '1', '127.0.0.1'],
  ['::', '1', '[::1]'],
] as const)
  test(`the last line of a start on ${HOST} with ${WORKERS} workers names the page to open`, async (t) => {
    const server = await childServer(t, { MONGODB_URI: '', HOST, WORKERS });
    const last: string[] = [];
    for await (const { msg } of server.log) {
      if (last.length > 0) last.push(msg);
      if (!msg.startsWith('open ')) continue;
      last.push(msg);
      const page = await fetch(msg.slice('open '.length));
      assert.match(await page.text(), /<title>sluice/);
      void server.end('SIGTERM');
    }
    // The line of a worker is written by another process, and can come later.
    const own = new Set(last.filter((msg) => msg !== 'request' && msg !== 'listening'));
    assert.deepEqual([...own], [`open http://${host}:${server.url.port}/`, 'stopping', 'stopped']);
  });
