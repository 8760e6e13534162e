import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { OverloadGuard } from '../../src/access/overload.ts';
import { serverOn } from '../support/process/server.ts';

const MIB = 2 ** 20;

/**
 * A guard with injected time and memory. `run(late)` is a tenth of a second in which the event loop is late by
 * `late` ms.
 */
function guarded(t: TestContext, memory = { bytes: 0 }) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let now = 0;
  const guard = new OverloadGuard(
    { maxLoopDelayMs: 200, maxWaitMs: 2000, maxMemoryBytes: 100 * MIB },
    { now: () => now, memoryBytes: () => memory.bytes },
  );
  guard.start();
  t.after(() => guard.close());
  const run = (late: number, times = 1) => {
    for (let i = 0; i < times; i++) {
      now += 100 + late;
      t.mock.timers.tick(100);
    }
  };
  return { guard, run };
}

test('one long pause refuses no request, and a loop that stays late refuses requests until it has caught up', (t) => {
  const { guard, run } = guarded(t);
  run(0, 10);
  run(600);
  assert.equal(guard.refusal(), null);
  run(0, 10);
  run(400, 2);
  assert.equal(guard.overloaded, true);
  const refusal = guard.refusal();
  assert.deepEqual([refusal?.status, refusal?.headers['retry-after']], [503, '2']);
  assert.match(refusal?.message ?? '', /MAX_LOOP_DELAY \(200 ms\)/);
  run(170, 20);
  assert.equal(guard.overloaded, true, 'the delay is below its limit, but not well below');
  run(0, 5);
  assert.equal(guard.overloaded, false);
});

test('memory that cannot be read counts as it was, and the guard goes on', (t) => {
  let read = (): number => 200 * MIB;
  const { guard, run } = guarded(t, {
    get bytes() {
      return read();
    },
  });
  const fail = () => {
    throw new Error('EMFILE: too many open files, uv_resident_set_memory');
  };
  run(0);
  assert.match(guard.refusal()?.message ?? '', /MAX_MEMORY/);
  read = fail;
  run(0, 3);
  assert.match(guard.refusal()?.message ?? '', /MAX_MEMORY/);
  read = () => MIB;
  run(0);
  assert.equal(guard.refusal(), null);
  read = fail;
  run(0);
  assert.equal(guard.refusal(), null);
});

test('a backlog that would make the next request wait too long refuses it, but a few requests or a burst do not', (t) => {
  const { guard, run } = guarded(t);
  const ask = (requests: number) => Array.from({ length: requests }, () => guard.backlog.began());
  const answer = (requests: number) => Array.from({ length: requests }, () => guard.backlog.done());
  ask(32);
  run(0, 100);
  assert.equal(guard.refusal(), null, 'the store is slow, and few wait for it');
  ask(468);
  run(0);
  assert.equal(guard.refusal(), null, 'they have just arrived, so their rate is unknown');
  answer(20);
  run(0);
  assert.match(guard.refusal()?.message ?? '', /MAX_WAIT \(2000 ms\)/, '480 at 20 in 100 ms');
  answer(80);
  assert.equal(guard.refusal(), null, '400 can be answered in time');
  ask(1);
  assert.equal(guard.overloaded, true);
});

test('memory above its limit refuses requests until it is freed', (t) => {
  const memory = { bytes: 101 * MIB };
  const { guard, run } = guarded(t, memory);
  run(0);
  assert.match(guard.refusal()?.message ?? '', /MAX_MEMORY/);
  memory.bytes = 90 * MIB;
  run(0);
  assert.equal(guard.refusal(), null);
});

test('an overloaded server refuses early, still answers probes and /metrics, and recovers by itself', async (t) => {
  const memory = { bytes: 0 };
  const server = await serverOn(
    t,
    { MONGODB_URI: '', MAX_MEMORY: '192', WORKERS: '1' },
    { overloadProbe: { memoryBytes: () => memory.bytes, now: () => performance.now() } },
  );
  const statusOf = async (path: string) => {
    const response = await server.get(path);
    await response.arrayBuffer();
    return response.status;
  };
  const until = async (status: number) => {
    while ((await statusOf('/items')) !== status);
  };
  assert.equal(await statusOf('/items'), 200);
  memory.bytes = 193 * MIB;
  await until(503);
  const refused = await server.get('/items/stream');
  assert.equal(refused.headers.get('retry-after'), '2');
  assert.equal(((await refused.json()) as { code: string }).code, 'overloaded');
  assert.deepEqual([await statusOf('/livez'), await statusOf('/readyz')], [200, 200]);
  assert.match(await (await server.get('/metrics')).text(), /^sluice_overloaded 1$/m);
  memory.bytes = 0;
  await until(200);
});
