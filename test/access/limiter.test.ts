import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import { createMemoryLimiter } from '../../src/access/limiter-memory.ts';
import {
  parseRateLimit,
  parseStreamLimit,
  RATE_LIMIT_FORM,
  STREAM_LIMIT_FORM,
} from '../../src/access/policy.ts';
import { createStreamSlots } from '../../src/access/stream-slots.ts';

const MINUTE = { limit: 10, windowSeconds: 60 };

function clocked(clients: number) {
  let time = 1_000_000;
  const limiter = createMemoryLimiter({ now: () => time, clients });
  return {
    take: (client: string) => limiter.take(client, MINUTE),
    pass: (milliseconds: number) => (time += milliseconds),
  };
}

/** The i-th of 2^24 addresses. */
const address = (i: number) => [10, i >> 16, (i >> 8) & 255, i & 255].join('.');

test('RATE_LIMIT and STREAM_LIMIT are parsed as documented', () => {
  assert.deepEqual(parseRateLimit('60000/min'), { limit: 60_000, windowSeconds: 60 });
  assert.deepEqual(parseRateLimit('100/s'), { limit: 100, windowSeconds: 1 });
  assert.deepEqual(parseRateLimit('1/h'), { limit: 1, windowSeconds: 3600 });
  assert.equal(parseRateLimit('off'), null);
  assert.equal(parseStreamLimit('64'), 64);
  assert.equal(parseStreamLimit('off'), Infinity);
  for (const good of ['60000/min', '1/s', '999999999/h', 'off'])
    assert.match(good, new RegExp(RATE_LIMIT_FORM));
  for (const bad of [
    '',
    '0/s',
    '1',
    '1/day',
    '1 / s',
    '-1/s',
    '1e3/s',
    '01/s',
    'OFF',
    '1/s\n',
    '1.5/s',
    '1/mins',
  ])
    assert.doesNotMatch(bad, new RegExp(RATE_LIMIT_FORM), bad);
  for (const bad of ['', '0', '-1', '64/s', '1e3', 'on', '1000000'])
    assert.doesNotMatch(bad, new RegExp(STREAM_LIMIT_FORM), bad);
});

test('a reset is never later than the length of the window, whatever fraction the clock returns', () => {
  for (let i = 0; i < 1000; i++) {
    const time = 92_639.70212066952 * (1 + i);
    const limiter = createMemoryLimiter({ now: () => time, clients: 16 });
    assert.equal(limiter.take('a', MINUTE).resetSeconds, 60, String(time));
  }
});

test('counters equal those of a simple model, for any requests in any order', () => {
  const client = fc.integer({ min: 0, max: 40 }).map((i) => (i % 7 === 0 ? `key:${i}` : address(i)));
  const step = fc.record({ client, wait: fc.oneof(fc.constant(0), fc.nat(2000), fc.nat(90_000)) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const { take, pass } = clocked(64);
      const model = new Map<string, { count: number; end: number }>();
      let time = 0;
      for (const { client: name, wait } of steps) {
        pass(wait);
        time += wait;
        const before = model.get(name);
        const window = before && before.end > time ? before : { count: 0, end: time + 60_000 };
        window.count++;
        model.set(name, window);
        assert.deepEqual(take(name), {
          allowed: window.count <= 10,
          remaining: Math.max(10 - window.count, 0),
          resetSeconds: Math.ceil((window.end - time) / 1000),
        });
      }
    }),
    { numRuns: process.env.LONG ? 20_000 : 300 },
  );
});

test('a flood of addresses resets no other counter, shares the remaining ones, and is forgotten with its window', () => {
  const { take, pass } = clocked(1000);
  for (let i = 0; i < 10; i++) take('192.0.2.7');
  let allowed = 0;
  for (let i = 0; i < 200_000; i++) if (take(address(i)).allowed) allowed++;
  assert.equal(take('192.0.2.7').allowed, false, 'used up before the flood and after it');
  assert.ok(allowed >= 999, `${allowed} allowed`);
  assert.ok(allowed <= 999 + 1024 * 10, `${allowed} allowed: 1024 shared counters at most`);
  assert.deepEqual(
    take('key:honest'),
    { allowed: true, remaining: 9, resetSeconds: 60 },
    'keys have their own counters',
  );
  pass(60_000);
  for (let i = 0; i < 1000; i++) assert.equal(take(`192.0.2.${i}`).remaining, 9, 'all slots are free again');
});

test('windows that end one after another are freed one after another', () => {
  const { take, pass } = clocked(100);
  for (let i = 0; i < 100_000; i++) {
    pass(600); // a hundred windows run at any time
    assert.equal(take(address(i)).remaining, 9, String(i));
  }
});

test('a slot is released once, and the limit of a client is reported before that of the process', () => {
  const slots = createStreamSlots({ perClient: 2, total: 3 });
  const first = slots.acquire('a');
  slots.acquire('a');
  const other = slots.acquire('b');
  assert.throws(() => slots.acquire('c'), { code: 'overloaded' });
  assert.throws(() => slots.acquire('a'), { code: 'too-many-streams' });
  first();
  first();
  assert.equal(slots.open, 2);
  slots.acquire('c');
  other();
  assert.equal(slots.open, 2);
});
