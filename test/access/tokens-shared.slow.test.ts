import assert from 'node:assert/strict';
import { test } from 'node:test';
import { childServer } from '../support/process/child-server.ts';
import { jwtSettings, signingPair, testIssuer, tokenOf } from '../support/access/issuer.ts';
import { testRedis } from '../support/redis/redis.ts';

test('two workers accept a token, give it its part, and count its subject together in Redis', async (t) => {
  const redis = await testRedis(t);
  if (!redis) return;
  const pair = await signingPair('one');
  const issuer = await testIssuer(t, [pair]);
  const server = await childServer(t, {
    MONGODB_URI: '',
    WORKERS: '2',
    SAMPLE: 'auto',
    REDIS_URL: redis.url,
    RATE_LIMIT: '12/h',
    ...jwtSettings(issuer),
  });
  const rights = { resources: ['items'], actions: ['read'], where: { items: { category: 'Fair' } } };
  const ask = (token: string, path = '/items?limit=5') =>
    fetch(new URL(path, server.url), {
      headers: { authorization: `Bearer ${token}`, connection: 'close' },
    });
  const [ada, again, bob] = await Promise.all([
    tokenOf(pair, { sluice: rights }),
    tokenOf(pair, { sluice: { ...rights, hide: { items: ['color'] } } }),
    tokenOf(pair, { sub: 'bob', sluice: { ...rights, where: { items: { category: 'Ideal' } } } }),
  ]);
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => ask(n % 2 ? ada : again)));
  const texts = await Promise.all(answers.map((one) => one.text()));
  const admitted = texts.filter((_, n) => answers[n]?.status === 200);
  assert.equal(admitted.length, 12, answers.map(({ status }) => status).join());
  for (const text of admitted) {
    const { data } = JSON.parse(text) as { data: { category: string }[] };
    assert.deepEqual(new Set(data.map(({ category }) => category)), new Set(['Fair']));
  }
  assert.ok(answers.every(({ status }) => status === 200 || status === 429));
  for (let n = 0; n < 6; n++) {
    const { status } = await ask(bob, '/items?limit=1&category=Fair');
    assert.equal(status, 200, 'another subject has its own limit');
  }
});
