import assert from 'node:assert/strict';
import { test } from 'node:test';
import { childServer, logged, type ChildServer } from '../support/process/child-server.ts';
import { samples } from '../support/telemetry/metrics.ts';
import type { EngineName } from '../support/process/server.ts';

/** `count` answers on new connections, which the kernel spreads over the workers. */
async function answers({ url }: ChildServer, count: number): Promise<number[]> {
  const asked = Array.from({ length: count }, async () => {
    const response = await fetch(new URL('/items?limit=1', url), { headers: { connection: 'close' } });
    await response.arrayBuffer();
    return response.status;
  });
  return Promise.all(asked);
}

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`two workers on ${engine} share a port, a killed one is replaced, and a stop ends all in order`, async (t) => {
    const server = await childServer(t, {
      MONGODB_URI: '',
      WORKERS: '2',
      HTTP_ENGINE: engine,
      SAMPLE: 'auto',
    });
    const second = await logged(server, 'listening');
    assert.equal(second.url, server.url.origin, 'on the same port');
    assert.notEqual(second.pid, server.pid);
    assert.deepEqual(new Set(await answers(server, 20)), new Set([200]));
    const name = 'sluice_requests_total{route="/items",resource="items",method="GET",status="200"}';
    while (((await samples(server.url)).get(name) ?? 0) < 20); // a worker may count a request after its client has the answer
    for (let asked = 0; asked < 6; asked++)
      assert.equal((await samples(server.url)).get(name), 20, 'any worker returns the metrics of both');

    process.kill(second.pid, 'SIGKILL');
    const replaced = await logged(server, 'listening');
    assert.equal(replaced.url, server.url.origin);
    assert.notEqual(replaced.pid, second.pid);
    assert.deepEqual(new Set(await answers(server, 20)), new Set([200]));

    const stream = await fetch(new URL('/items/stream', server.url));
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    const pieces = [(await reader.read()).value ?? new Uint8Array(0)];
    const ended = server.end('SIGTERM');
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) pieces.push(piece.value);
    assert.equal(
      Buffer.concat(pieces).toString().split('\n').length,
      53_941,
      'a running stream ends normally',
    );
    assert.equal(await ended, 0);
    await assert.rejects(answers(server, 1), TypeError, 'no process listens any more');
  });

test('workers whose primary is killed stop by themselves', async (t) => {
  const server = await childServer(t, { MONGODB_URI: '', WORKERS: '2' });
  await logged(server, 'listening');
  process.kill(server.pid, 'SIGKILL');
  const stopped = new Set<number>();
  for await (const { msg, pid } of server.log) if (msg === 'stopped') stopped.add(pid);
  assert.equal(stopped.size, 2, 'the log ends when the last of them has ended');
});
