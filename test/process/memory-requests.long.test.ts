import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { childServer, cli, rssOf, type ChildServer } from '../support/process/child-server.ts';
import { testEnvironment } from '../support/process/server.ts';

const AT_ONCE = 64;
const ROUNDS = 5;
const LOOK_MS = 10;
const MIB = 2 ** 20;
const BODY = JSON.stringify({ name: 'x', email: 'a@b', metadata: { a: 'x'.repeat(MIB - 100) } });

/** The largest memory of a process while `work` runs. */
async function highest(rss: () => number, work: Promise<unknown>): Promise<number> {
  let most = rss();
  const looking = setInterval(() => (most = Math.max(most, rss() || 0)), LOOK_MS);
  await work.finally(() => clearInterval(looking));
  return most;
}

/** The most memory that each of many concurrent requests takes, compared with some single ones before. MiB. */
async function perRequest(
  server: ChildServer,
  ask: () => Promise<Response>,
  status: number,
): Promise<number> {
  const one = async () => {
    const response = await ask();
    await response.arrayBuffer();
    assert.equal(response.status, status);
  };
  for (let i = 0; i < AT_ONCE; i++) await one();
  const before = server.rss();
  let most = 0;
  for (let round = 0; round < ROUNDS; round++)
    most = Math.max(
      most,
      await highest(() => server.rss(), Promise.all(Array.from({ length: AT_ONCE }, one))),
    );
  return (most - before) / AT_ONCE / MIB;
}

for (const [name, mostMib, path, init, status] of [
  ['a page of 1,000', 2, '/items?limit=1000', { headers: { 'accept-encoding': 'identity' } }, 200],
  ['a page of 1,000, br', 3, '/items?limit=1000', { headers: { 'accept-encoding': 'br' } }, 200],
  [
    'a body of 1 MiB',
    8,
    '/api/users/ada',
    { method: 'PUT', body: BODY, headers: { 'content-type': 'application/json' } },
    422,
  ],
] as const)
  test(`${name} takes at most ${mostMib} MiB, also when ${AT_ONCE} come at once`, async (t) => {
    const server = await childServer(t, { MONGODB_URI: '', SAMPLE: 'auto', RATE_LIMIT: 'off' });
    const took = await perRequest(server, () => fetch(new URL(path, server.url), init), status);
    t.diagnostic(`${name}: ${took.toFixed(2)} MiB`);
    assert.ok(took <= mostMib);
  });

test('an import of 1,000,000 rows uses hardly more memory than one of 100,000', async (t) => {
  const took: number[] = [];
  for (const rows of [100_000, 1_000_000]) {
    const env = { ...process.env, ...(await testEnvironment(t)), MONGODB_URI: '' };
    const child = spawn(process.execPath, [await cli(), 'import', '--generate', String(rows)], {
      env,
      stdio: 'ignore',
    });
    const ended = once(child, 'exit');
    took.push(await highest(() => (child.exitCode === null ? rssOf(child.pid ?? 0) : 0), ended));
    assert.deepEqual(await ended, [0, null]);
  }
  const [less = 0, more = 0] = took.map((bytes) => bytes / MIB);
  t.diagnostic(`100,000 rows: ${less.toFixed(0)} MiB; 1,000,000: ${more.toFixed(0)} MiB`);
  assert.ok(more <= 1.25 * less);
});
