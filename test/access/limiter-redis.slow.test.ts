import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setImmediate as immediate } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Allowance } from '../../src/access/policy.ts';
import { connectRedisLimiter } from '../../src/access/limiter-redis.ts';
import { freePort } from '../support/ports.ts';
import { testRedis } from '../support/redis/redis.ts';

const POLICY = { limit: 10, windowSeconds: 60 };

/** A limiter whose clock the test moves. */
async function limiterOn(t: TestContext, url: string) {
  const lines: { details: object; message: string }[] = [];
  const say = (details: object, message: string) => lines.push({ details, message });
  let time = 0;
  const limiter = await connectRedisLimiter({
    url,
    log: { info: say, warn: say, error: say },
    now: () => time,
  });
  t.after(() => limiter.close());
  const take = (client: string): Promise<Allowance> => Promise.resolve(limiter.take(client, POLICY));
  return {
    limiter,
    lines,
    take,
    pass: (milliseconds: number) => (time += milliseconds),
    /** Takes until the log says that Redis counts again. */
    respondsAgain: async (): Promise<void> => {
      const before = lines.length;
      while (lines.length === before) {
        time += 1000;
        await take('another');
        await immediate();
      }
      assert.match(lines.at(-1)?.message ?? '', /^Redis responds again/);
    },
  };
}

test('two processes on one Redis count each client together', async (t) => {
  const redis = await testRedis(t);
  if (!redis) return;
  const one = await limiterOn(t, redis.url);
  const two = await limiterOn(t, redis.url);
  const seen: number[] = [];
  for (let i = 0; i < 5; i++) seen.push((await one.take('a')).remaining, (await two.take('a')).remaining);
  assert.deepEqual(seen, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
  const refused = await two.take('a');
  assert.deepEqual({ ...refused, resetSeconds: 0 }, { allowed: false, remaining: 0, resetSeconds: 0 });
  assert.ok(refused.resetSeconds >= 1 && refused.resetSeconds <= 60);
  assert.equal((await one.take('a')).allowed, false);
  assert.deepEqual(await one.take('b'), { allowed: true, remaining: 9, resetSeconds: 60 });
  assert.deepEqual([...one.lines, ...two.lines], []);
});

test('counters expire in Redis by themselves', async (t) => {
  const redis = await testRedis(t);
  if (!redis) return;
  const { take } = await limiterOn(t, redis.url);
  for (let i = 0; i < 50; i++) await take(`client-${i}`);
  const client = new Redis(redis.url);
  t.after(() => client.disconnect());
  const keys = await client.keys('*');
  assert.equal(keys.length, 50);
  for (const key of keys) assert.ok((await client.pttl(key)) > 0, key);
});

test('without Redis limits continue in the process, with Redis back they are shared again, and each change is logged once', async (t) => {
  const redis = await testRedis(t);
  if (!redis) return;
  const { take, lines, respondsAgain } = await limiterOn(t, redis.url);
  for (let i = 0; i < 3; i++) await take('a');
  await redis.kill();
  const alone: boolean[] = [];
  for (let i = 0; i < POLICY.limit + 3; i++) alone.push((await take('a')).allowed);
  assert.deepEqual(
    alone,
    Array.from({ length: 13 }, (_, i) => i < 10),
    'the whole limit again, and no more',
  );
  assert.equal(lines.length, 1);
  assert.match(lines[0]?.message ?? '', /^Redis does not respond: RATE_LIMIT/);

  await redis.start();
  await respondsAgain();
  const other = await limiterOn(t, redis.url);
  assert.equal((await take('a')).remaining, 9);
  assert.equal((await other.take('a')).remaining, 8);
  assert.equal(lines.length, 2);
});

test('a Redis that hangs delays only the requests that wait for it, and not for long', async (t) => {
  const redis = await testRedis(t);
  if (!redis) return;
  const { take, lines, respondsAgain } = await limiterOn(t, redis.url);
  await take('a');
  redis.pause();
  t.after(() => redis.resume());
  const waiting = await Promise.all([take('a'), take('a')]);
  assert.deepEqual(
    waiting.map(({ remaining }) => remaining),
    [9, 8],
  );
  assert.equal(lines.length, 1);
  const started = performance.now();
  for (let i = 0; i < 5; i++) await take('a');
  assert.ok(performance.now() - started < 3000, 'Redis is not asked again: each time would wait a second');
  redis.resume();
  await respondsAgain();
  const other = await limiterOn(t, redis.url);
  const { remaining } = await take('b');
  assert.equal((await other.take('b')).remaining, remaining - 1);
});

test('a Redis that refuses writes counts as unavailable', async (t) => {
  const redis = await testRedis(t);
  if (!redis) return;
  const { take, lines, respondsAgain, pass } = await limiterOn(t, redis.url);
  const admin = new Redis(redis.url);
  t.after(() => admin.disconnect());
  await admin.replicaof('127.0.0.1', await freePort());
  assert.equal((await take('a')).remaining, 9);
  for (let i = 0; i < 5; i++) {
    pass(1001);
    await take('a');
  }
  assert.equal(lines.length, 1, 'a PING succeeds, which proves nothing');
  assert.match(JSON.stringify(lines[0]), /READONLY/);
  await admin.replicaof('NO', 'ONE');
  await respondsAgain();
  assert.equal((await take('b')).remaining, 9);
});

test('the server starts without Redis, and never logs a password', async (t) => {
  const away = await limiterOn(t, `redis://:hunter2@127.0.0.1:${await freePort()}`);
  assert.equal(away.lines.length, 1);
  assert.match(JSON.stringify(away.lines), /ECONNREFUSED/);

  const redis = await testRedis(t, ['--requirepass', 'right']);
  if (!redis) return;
  const wrong = await limiterOn(t, redis.url.replace('//', '//:hunter2@'));
  assert.equal((await wrong.take('a')).remaining, 9);
  assert.match(JSON.stringify(wrong.lines), /WRONGPASS/);
  assert.doesNotMatch(JSON.stringify([...away.lines, ...wrong.lines]), /hunter2/);
  const right = await limiterOn(t, redis.url.replace('//', '//:right@'));
  assert.equal((await right.take('a')).remaining, 9);
  assert.deepEqual(right.lines, []);
});

test('the server starts although its Redis hangs or hangs up', async (t) => {
  const deaf = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  await once(deaf, 'listening');
  t.after(() => deaf.close());
  const hungUpOn = await limiterOn(t, `redis://127.0.0.1:${(deaf.address() as AddressInfo).port}`);
  assert.equal((await hungUpOn.take('a')).remaining, 9);
  assert.equal(hungUpOn.lines.length, 1);

  const redis = await testRedis(t);
  if (!redis) return;
  redis.pause();
  const { take, lines, respondsAgain } = await limiterOn(t, redis.url);
  assert.equal((await take('a')).remaining, 9);
  assert.equal(lines.length, 1);
  redis.resume();
  await respondsAgain();
});

test('after close nothing is logged and nothing keeps the process alive', async (t) => {
  const redis = await testRedis(t);
  if (!redis) return;
  const { limiter, take, lines } = await limiterOn(t, redis.url);
  const waiting = take('a');
  await limiter.close();
  await redis.kill();
  assert.equal((await waiting).allowed, true);
  assert.equal((await take('a')).allowed, true);
  assert.deepEqual(lines, []);
});
