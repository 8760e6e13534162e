import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import type { Export } from '../../src/exports/export.ts';
import { ITEM_COLLECTION } from '../../src/resources/item-collection.ts';
import { BSON } from '../../src/store/bson.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { Slots } from '../../src/store/slots.ts';
import { childProgram } from '../support/process/child-program.ts';
import { awaited, exportRows, fileOf, order } from '../support/exports/exports.ts';
import { testDirectory } from '../support/store/sqlite/sqlite.ts';
import { openStore } from '../support/store/mongo/mongo.ts';
import { ownMongod } from '../support/store/mongo/mongod.ts';
import { ORDER_INDEXES, ordersOf } from '../support/resources/orders.ts';
import { testRedis } from '../support/redis/redis.ts';

const KILLS = process.env.LONG ? 30 : 3;
const ROWS = process.env.LONG ? 100_000 : 30_000;
const LEASE_MS = '400';
/** A file without a record is removed after two checks a minute apart. */
const PATIENCE_MS = 150_000;
interface Order {
  readonly format: string;
  readonly compression: string;
  readonly sort?: string;
  readonly resource?: string;
}
const ORDERS: readonly Order[] = [
  { format: 'csv', compression: 'br' },
  { format: 'json', compression: 'gzip', sort: 'price_desc' },
  { format: 'arrow', compression: 'none' },
];
const OF_A_RESOURCE = {
  ...{ resource: 'orders', status: 'paid', sort: 'createdAt_desc' },
  ...{ format: 'ndjson', compression: 'gzip' },
};

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
async function assertSame(url: string, orders: readonly Order[] = ORDERS): Promise<void> {
  for (const { id } of await listed(url)) await awaited(url, id);
  const interrupted = await listed(url);
  for (const body of orders) {
    const rows = body.resource === undefined ? ROWS : Math.floor((ROWS + 1) / 3);
    const { id } = await order(url, body);
    const reference = await awaited(url, id);
    assert.equal(reference.file?.rows, rows);
    const same = interrupted.filter(
      ({ request }) => request.format === body.format && request.resource === body.resource,
    );
    assert.ok(same.length > 0);
    for (const one of same) {
      assert.deepEqual([one.file?.rows, one.file?.sha256], [rows, reference.file.sha256]);
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

async function orderAll(url: string, orders: readonly Order[] = ORDERS): Promise<void> {
  for (const body of orders) await order(url, body);
}

async function fill(
  insert: (rows: readonly Uint8Array[], onConflict: 'fail') => Promise<unknown>,
): Promise<void> {
  await insert(
    exportRows(ROWS).map((row) => BSON.serialize(row)),
    'fail',
  );
}

test(`an export is whole and the same after kill -9 of its server at ${KILLS} moments`, async (t) => {
  const DATA_DIR = await testDirectory(t);
  const store = await openSqlite({ items: ITEM_COLLECTION, directory: DATA_DIR, slots: new Slots() });
  await fill((...call) => store.items.insert(...call));
  const rows = await store.open({ name: 'orders', collection: 'orders', indexes: ORDER_INDEXES });
  await rows.insert(
    ordersOf(ROWS).map((row) => BSON.serialize(row)),
    'fail',
  );
  await store.close();
  const all = [...ORDERS, OF_A_RESOURCE];
  let child = await startChild(t, { DATA_DIR });
  await orderAll(child.url, all);
  const moments: string[] = [];
  for (let kills = 0; kills < KILLS; kills++) {
    if (kills % 2 === 1) await untilUnderWay(child.url);
    await sleep(Math.random() * 500); // any moment will do
    const rows = (await listed(child.url)).map(({ state, progress }) => `${state} ${progress.rows}`);
    moments.push(rows.join(', '));
    await child.kill();
    child = await startChild(t, { DATA_DIR });
    if ((await listed(child.url)).every(({ state }) => state === 'complete')) await orderAll(child.url, all);
  }
  t.diagnostic(`killed at: ${moments.join(' | ')}`);
  await assertSame(child.url, all);
  const unfinished = async () =>
    (await readdir(join(DATA_DIR, 'exports'))).filter((name) => name.endsWith('.part'));
  // The export is complete before the file it replaces is removed. A kill between the two leaves that file to the
  // check each minute.
  const patience = AbortSignal.timeout(PATIENCE_MS);
  while ((await unfinished()).length > 0 && !patience.aborted) await sleep(10);
  assert.deepEqual(await unfinished(), [], 'no unfinished file is left');
  await child.kill();
});

test('servers on one MongoDB and one Redis share exports: one takes over from a killed one, even when Redis is killed too', async (t) => {
  const set = await ownMongod(t);
  if (!set) return;
  const redis = await testRedis(t);
  if (!redis) return;
  const { store } = await openStore(t, set.uri);
  await fill((...call) => store.items.insert(...call));
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
  await fill((...call) => store.items.insert(...call));
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
