import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { AppError, storeUnavailable } from '../../src/base/errors.ts';
import { cancel, isFinal, type ExportRequest } from '../../src/exports/job.ts';
import { BSON } from '../../src/store/values/bson.ts';
import type { From } from '../../src/store/store.ts';
import { crc32 } from '../../src/pipeline/crc32.ts';
import { childServer, logged } from '../support/process/child-server.ts';
import {
  LEASE_MS,
  openDirectory,
  twoHandles,
  Worker,
  type Handle,
} from '../support/exports/export-worker.ts';
import { awaited, exportRows, fileOf, order } from '../support/exports/exports.ts';
import { temporaryFolder } from '../support/directory.ts';
import { until } from '../support/store/changes.ts';
import { openStore } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import type { StoreName } from '../support/process/server.ts';
import type { StoreWithItems } from '../support/store/with-items.ts';

const ROWS = exportRows(13_000); // two pieces and a remainder
const REQUEST: ExportRequest = {
  resource: 'items',
  query: 'sort=id_asc&fields=price,note',
  format: 'ndjson',
  compression: 'none',
};
const TEXT = ROWS.map(({ _id, price, note }) => `${JSON.stringify({ id: _id, price, note })}\n`).join('');
const STORES = ['sqlite', 'mongodb'] as const;
const BEAT_MS = 1_000;
/** The kernel gives all of these to one of two processes once in half a million times. */
const ORDERS = 20;

async function fill({ items }: StoreWithItems): Promise<void> {
  const { refused } = await items.insert(
    ROWS.map((row) => BSON.serialize(row)),
    'fail',
  );
  assert.deepEqual(refused, []);
}

async function twoFilled(t: TestContext, name: StoreName): Promise<[Handle, Handle] | null> {
  const handles = await twoHandles(t, name);
  if (handles) await fill(handles[0].store);
  return handles;
}

/** A gate that another function opens. */
function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

for (const name of STORES)
  test(`${name}: of two workers that hear of a job five times each, one works on it, and later messages start none`, async (t) => {
    const handles = await twoFilled(t, name);
    if (!handles) return;
    const begun: string[] = [];
    const hooks = { begins: (file: string) => void begun.push(file) };
    const one = new Worker(handles[0], hooks);
    const other = new Worker(handles[1], hooks);
    const jobs = await Promise.all(
      [1, 2, 3].map(() => one.jobs.create('ada', () => Promise.resolve(REQUEST), t.signal)),
    );
    const ids = jobs.map(({ id }) => id);
    const workOnAll = () =>
      Promise.all(
        ids.flatMap((id) => [one, other].flatMap(({ work }) => [1, 2, 3, 4, 5].map(() => work(id)))),
      );
    await workOnAll();
    assert.deepEqual(
      begun.map((file) => file.split('.')[0]).toSorted(),
      ids.toSorted(),
      'one file for each job',
    );
    const done = await Promise.all(ids.map((id) => other.jobs.get(id, t.signal)));
    for (const job of done) {
      assert.equal(await other.textOf(job), TEXT);
      assert.ok(job?.state === 'complete');
      const { rows, bytes, crc32: crc } = job.file;
      assert.deepEqual([rows, bytes, crc], [ROWS.length, TEXT.length, crc32(Buffer.from(TEXT))]);
    }
    assert.deepEqual(new Set(await workOnAll()), new Set([null]), 'there is nothing to do');
    assert.equal(begun.length, ids.length);
    assert.deepEqual(await Promise.all(ids.map((id) => one.jobs.get(id, t.signal))), done);
    assert.deepEqual((await one.files.names()).toSorted(), begun.toSorted());
    await Promise.all([one.close(), other.close()]);
    for (const { slots } of handles) assert.equal(slots.taken, 0);
  });

for (const name of STORES)
  test(`${name}: a worker that is held up for longer than its lease spoils nothing of its successor`, async (t) => {
    const handles = await twoFilled(t, name);
    if (!handles) return;
    let time = Date.now();
    const now = () => new Date(time);
    const begun = gate();
    const held = gate();
    const slow = new Worker(handles[0], {
      now,
      begins: () => {
        begun.open();
        return held.opened;
      },
    });
    const next = new Worker(handles[1], { now });
    const { id } = await slow.jobs.create('ada', () => Promise.resolve(REQUEST), t.signal);
    const working = slow.work(id);
    await begun.opened;
    assert.equal(await next.work(id), LEASE_MS, 'the lease is still valid');
    time += LEASE_MS;
    assert.equal(await next.work(id), null);
    const done = await next.jobs.get(id, t.signal);
    held.open();
    assert.equal(await working, null);
    assert.deepEqual(await next.jobs.get(id, t.signal), done);
    assert.ok(done?.state === 'complete');
    assert.deepEqual(await next.files.names(), [done.file.name], 'its file is removed');
    assert.equal(await next.textOf(done), TEXT);
    await Promise.all([slow.close(), next.close()]);
  });

for (const name of STORES)
  test(`${name}: a worker that gives a job back leaves the file of the worker that takes it at once`, async (t) => {
    const handles = await twoFilled(t, name);
    if (!handles) return;
    const begun = gate();
    const held = gate();
    const start = new Date();
    const now = () => start;
    let working: Promise<unknown> = Promise.resolve();
    const next = new Worker(handles[1], {
      now,
      writes: (piece) => {
        if (piece !== 2) return undefined;
        begun.open();
        return held.opened;
      },
    });
    let isGivenBack = false;
    const stopping: Worker = new Worker(handles[0], {
      now,
      begins: () => void stopping.close(),
      names: async () => {
        if ((await next.jobs.current(id))?.state !== 'queued' || isGivenBack) return;
        isGivenBack = true;
        working = next.work(id);
        await begun.opened;
      },
    });
    await stopping.paused(5_000);
    const { id } = await stopping.jobs.create('ada', () => Promise.resolve(REQUEST), t.signal);
    assert.equal(
      await stopping.work(id),
      LEASE_MS,
      'unless the other worker dies, its lease is renewed until then',
    );
    assert.ok(isGivenBack);
    held.open();
    assert.equal(await working, null);
    const done = await next.jobs.get(id, t.signal);
    assert.equal(await next.textOf(done), TEXT);
    await next.close();
  });

/** How a job ends, and which files it has then. */
const ENDS = {
  'complete: its own': () => Promise.resolve(),
  'failed: none': () => Promise.reject(new AppError('insufficient-storage', 'a full disk')),
} as const;

for (const name of STORES)
  for (const [end, writes] of Object.entries(ENDS))
    test(`${name}: when a job ends, files of its killed attempts are removed and files of other jobs stay (${end})`, async (t) => {
      const handles = await twoFilled(t, name);
      if (!handles) return;
      const worker = new Worker(handles[0], { writes });
      const { id } = await worker.jobs.create('ada', () => Promise.resolve(REQUEST), t.signal);
      const others = [`${id}0.aaaa`, `${id.slice(0, -1)}.aaaa`];
      for (const file of [`${id}.aaaa`, `${id}.bbbb`, ...others])
        await (await worker.files.create(file)).close();
      assert.equal(await worker.work(id), null);
      const job = await worker.jobs.get(id, t.signal);
      assert.ok(job, 'the job is kept');
      assert.equal(job.state, end.split(':')[0]);
      const own = job.state === 'complete' ? [job.file.name] : [];
      assert.deepEqual(new Set(await worker.files.names()), new Set([...own, ...others]));
      await worker.close();
    });

test('a job that another process cancels ends at the next beat, without a file', async (t) => {
  const handles = await twoFilled(t, 'sqlite');
  if (!handles) return;
  const pieces: number[] = [];
  const worker: Worker = new Worker(handles[0], {
    writes: async (piece) => {
      pieces.push(piece);
      if (piece !== 2) return;
      const now = new Date();
      const final = { finishedAt: now, expiresAt: new Date(now.getTime() + LEASE_MS) };
      await other.jobs.change(id, (job) => (isFinal(job) ? job : cancel(job, final)));
      await worker.beat(BEAT_MS);
    },
  });
  const other = new Worker(handles[1]);
  const { id } = await other.jobs.create('ada', () => Promise.resolve(REQUEST), t.signal);
  assert.equal(await worker.work(id), null);
  assert.deepEqual(pieces, [1, 2]);
  assert.equal((await other.jobs.get(id, t.signal))?.state, 'cancelled');
  assert.deepEqual(await other.files.names(), []);
  await Promise.all([worker.close(), other.close()]);
  await until('no slot is taken', () => Promise.resolve(handles[0].slots.taken === 0));
});

test('the attempt after a failed one writes the whole file, and five failures, after growing pauses, fail the job', async (t) => {
  const handles = await twoFilled(t, 'sqlite');
  if (!handles) return;
  let time = Date.now();
  let fault: Error | null = storeUnavailable(new Error('away'));
  let from: From[] = [];
  const worker: Worker = new Worker(handles[0], {
    now: () => new Date(time),
    reads: (one) => void from.push(one),
    writes: async (piece) => {
      if (piece === 2) await worker.beat(BEAT_MS);
      if (piece === 3 && fault) throw fault;
    },
  });
  const { id } = await worker.jobs.create('ada', () => Promise.resolve(REQUEST), t.signal);
  assert.equal(await worker.work(id), 1_000);
  const failed = await worker.jobs.get(id, t.signal);
  assert.ok(failed?.state === 'queued');
  assert.deepEqual(await worker.files.names(), []);
  assert.ok(failed.progress.rows > 0, 'as the beat reported'); // all of them while a piece waits for a slow disk
  assert.equal(await worker.work(id), 1_000, 'it is not due yet');
  from = [];
  fault = null;
  time = time + 1_000;
  assert.equal(await worker.work(id), null);
  assert.deepEqual(from[0], {});
  const done = await worker.jobs.get(id, t.signal);
  assert.ok(done?.state === 'complete');
  assert.equal(await worker.textOf(done), TEXT);
  assert.deepEqual(await worker.files.names(), [done.file.name]);

  const hopeless = await worker.jobs.create('ada', () => Promise.resolve(REQUEST), t.signal);
  fault = new Error('a secret of ours');
  const pauses = [];
  for (let wait: number | null = 0; wait !== null; pauses.push(wait)) {
    time += wait;
    wait = await worker.work(hopeless.id);
  }
  assert.deepEqual(pauses, [1_000, 2_000, 4_000, 8_000, null]);
  const given = await worker.jobs.get(hopeless.id, t.signal);
  assert.ok(given?.state === 'failed');
  assert.equal(given.failure.code, 'internal');
  assert.doesNotMatch(given.failure.detail, /secret/);
  assert.deepEqual(await worker.files.names(), [done.file.name]);
  await worker.close();
});

for (const name of STORES)
  test(`${name}: of two processes on a port one makes each export, and each serves the files of both`, async (t) => {
    const DATA_DIR = await temporaryFolder(t);
    const MONGODB_URI = name === 'sqlite' ? '' : await testMongo(t);
    if (MONGODB_URI === null) return;
    const { store } = name === 'sqlite' ? await openDirectory(DATA_DIR) : await openStore(t, MONGODB_URI);
    await fill(store);
    await store.close();
    const settings = { WORKERS: '2', EXPORT_CONCURRENCY: '1', EXPORT_LIMIT: String(ORDERS) };
    const server = await childServer(t, { ...settings, DATA_DIR, MONGODB_URI });
    await logged(server, 'listening'); // the second one
    const url = server.url.origin;
    const anew = { connection: 'close' }; // the kernel distributes new connections over the processes
    const orders = await Promise.all(
      Array.from({ length: ORDERS }, () => order(url, { fields: ['price', 'note'] }, anew)),
    );
    for (const { id } of orders) {
      const done = await awaited(url, id, undefined, anew);
      for (let times = 0; times < 2; times++) assert.equal(String(await fileOf(url, done, anew)), TEXT);
    }
    await server.end('SIGTERM');
    const completed: string[] = [];
    const asked = { order: new Set<number>(), file: new Set<number>() };
    for await (const { msg, exportId: id, path, method, pid } of server.log) {
      if (msg === 'export complete') completed.push(id ?? '');
      if (method === 'POST') asked.order.add(pid);
      if (path?.endsWith('/file')) asked.file.add(pid);
    }
    assert.deepEqual(completed.toSorted(), orders.map(({ id }) => id).toSorted());
    assert.deepEqual([asked.order.size, asked.file.size], [2, 2], 'both processes were asked');
  });
