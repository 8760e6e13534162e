import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { childServer, logged, type ChildServer } from '../support/process/child-server.ts';
import { freePort } from '../support/ports.ts';
import { testRedis, type TestRedis } from '../support/redis/redis.ts';

/** The longest time from a process's last log line to its exit. Milliseconds. */
const LATEST_MS = 4_000;
const SETTINGS = { MONGODB_URI: '', SAMPLE: 'off', RATE_LIMIT: '1000/s' };

/** Orders an export, which opens the queue. */
async function order({ url }: ChildServer): Promise<void> {
  const response = await fetch(new URL('/exports', url), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  assert.equal(response.status, 202, await response.text());
}

/** Stops the server. Resolves with the milliseconds from its last log line to its exit. */
async function lingering(server: ChildServer): Promise<number> {
  const ended = server.end('SIGTERM').then((code) => ({ code, at: Date.now() }));
  const { time } = await logged(server, 'stopped');
  const { code, at } = await ended;
  assert.equal(code, 0);
  return at - time;
}

for (const exports of ['without an export', 'with an export waiting'])
  test(`a server whose Redis never answered exits after its last log line, ${exports}`, async (t) => {
    const server = await childServer(t, { ...SETTINGS, REDIS_URL: `redis://127.0.0.1:${await freePort()}` });
    if (exports === 'with an export waiting') await order(server);
    const ms = await lingering(server);
    assert.ok(ms < LATEST_MS, `${ms} ms`);
  });

const HARMS = {
  async dies(redis: TestRedis, server: ChildServer) {
    await redis.kill();
    await logged(server, 'Redis does not respond: exports wait until it does');
  },
  hangs(redis: TestRedis, _server: ChildServer, t: TestContext) {
    redis.pause();
    t.after(() => redis.resume());
  },
};

for (const [name, harm] of Object.entries(HARMS))
  test(`a server whose Redis ${name} while it serves exits after its last log line`, async (t) => {
    const redis = await testRedis(t);
    if (!redis) return;
    const server = await childServer(t, { ...SETTINGS, REDIS_URL: redis.url });
    await order(server);
    await harm(redis, server, t);
    const ms = await lingering(server);
    assert.ok(ms < LATEST_MS, `${ms} ms`);
  });
