import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import type { Export } from '../../src/exports/export.ts';
import { childProgram } from '../support/process/child-program.ts';
import { awaited, exportRows, fileOf, order } from '../support/exports/exports.ts';
import { testDirectory } from '../support/store/sqlite/sqlite.ts';
import { openStore } from '../support/store/mongo/mongo.ts';
import { ownMongod } from '../support/store/mongo/mongod.ts';
import { testRedis } from '../support/redis/redis.ts';
import { insertDocuments } from '../support/store/items.ts';

const ROWS = process.env.LONG ? 100_000 : 30_000;
const LEASE_MS = '400';
const ORDERS = [
  { format: 'csv', compression: 'br' },
  { format: 'json', compression: 'gzip', sort: 'price_desc' },
  { format: 'arrow', compression: 'none' },
];

interface Child {
  readonly url: string;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
}

async function startChild(t: TestContext, environment: Record<string, string>): Promise<Child> {
  const settings = {
    ...{ PORT: '0', SAMPLE: 'off', LEASE_MS, EXPORT_LIMIT: '1000' },
    MAX_LOOP_DELAY: '1 h', // the machine is busy with other tests
    ...environment,
  };
  const child: ChildProcess = spawn(process.execPath, childProgram('exports/export-child.ts'), {
    env: { ...process.env, MONGODB_URI: '', REDIS_URL: '', ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  t.after(kill);
  assert.ok(child.stdout);
  const [url] = (await once(createInterface(child.stdout), 'line')) as [string];
  return { url, kill };
}

/** All exports of the server in their current state. */
async function listed(url: string): Promise<Export[]> {
  return ((await (await fetch(`${url}/exports`)).json()) as { data: Export[] }).data;
}

/**
 * Asserts that all files of every order are whole and equal, byte for byte, to the file of an uninterrupted export.
 */
async function assertSame(url: string): Promise<void> {
  for (const { id } of await listed(url)) await awaited(url, id);
  const interrupted = await listed(url);
  for (const body of ORDERS) {
    const { id } = await order(url, body);
    const reference = await awaited(url, id);
    assert.equal(reference.file?.rows, ROWS);
    const same = interrupted.filter(({ request }) => request.format === body.format);
    assert.ok(same.length > 0);
    for (const one of same) {
      assert.deepEqual([one.file?.rows, one.file?.sha256], [ROWS, reference.file.sha256]);
      assert.equal(
        createHash('sha256')
          .update(await fileOf(url, one))
          .digest('hex'),
        one.file?.sha256,
      );
    }
  }
}

/** Resolves once some export has written rows. */
async function untilUnderWay(url: string): Promise<void> {
  while ((await listed(url)).every(({ state, progress }) => state !== 'complete' && progress.rows === 0))
    await sleep(10);
}

async function orderAll(url: string): Promise<void> {
  for (const body of ORDERS) await order(url, body);
}

test('servers on one MongoDB and one Redis share exports: one takes over from a killed one, even when Redis is killed too', async (t) => {
  const set = await ownMongod(t);
  if (!set) return;
  const redis = await testRedis(t);
  if (!redis) return;
  const { store } = await openStore(t, set.uri);
  await insertDocuments(store.items, exportRows(ROWS));
  const settings = async () => ({
    DATA_DIR: await testDirectory(t),
    MONGODB_URI: set.uri,
    REDIS_URL: redis.url,
    EXPORT_CONCURRENCY: '1',
  });
  const first = await startChild(t, await settings());
  const second = await startChild(t, await settings());
  await orderAll(first.url);
  const running = (found: Export) => found.state !== 'queued';
  const [newest] = await listed(second.url);
  assert.ok(newest);
  await awaited(second.url, newest.id, running);
  await redis.kill();
  await first.kill();
  await redis.start();
  await assertSame(second.url);
  await second.kill();
});

test('an export is whole and the same when the primary of its MongoDB is killed', async (t) => {
  const set = await ownMongod(t, { members: 3, electionMs: 2_000, cacheGB: 0.25 });
  if (!set) return;
  const { store } = await openStore(t, set.uri);
  await insertDocuments(store.items, exportRows(ROWS));
  const child = await startChild(t, { DATA_DIR: await testDirectory(t), MONGODB_URI: set.uri });
  await orderAll(child.url);
  await untilUnderWay(child.url);
  const before = await listed(child.url);
  await (await set.primary()).kill();
  await set.primary(); // the newly elected one
  while (!(await fetch(`${child.url}/readyz`)).ok) await sleep(10);
  await assertSame(child.url);
  const after = await listed(child.url);
  for (const { id, state } of before)
    assert.equal(after.find((found) => found.id === id)?.consistency, 'snapshot', state);
  await child.kill();
});
