import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { Exporter } from '../src/exports/exporter.ts';
import type { ExportRequest } from '../src/exports/job.ts';
import { Jobs } from '../src/exports/jobs.ts';
import type { Work } from '../src/queue/queue.ts';
import { createTranscoder } from '../src/serialize/transcoder.ts';
import { BSON } from '../src/store/bson.ts';
import type { FileStore } from '../src/store/files.ts';
import { openLmdb } from '../src/store/lmdb.ts';
import { Slots } from '../src/store/slots.ts';
import type { Store } from '../src/store/store.ts';
import { crc32 } from '../src/stream/crc32.ts';
import { childServer, logged } from './support/child-server.ts';
import { awaited, exportRows, fileOf, order } from './support/exports.ts';
import { testDirectory } from './support/lmdb.ts';
import { openStore } from './support/mongo.ts';
import { testMongo } from './support/mongod.ts';
import type { StoreName } from './support/server.ts';

const ROWS = exportRows(5_000); // a segment, and what is left over
const LEASE_MS = 10_000;
const REQUEST: ExportRequest = { sort: 'id_asc', fields: ['price'], format: 'ndjson', compression: 'none' };
const TEXT = ROWS.map(({ _id, price }) => `${JSON.stringify({ id: _id, price })}\n`).join('');
const STORES = ['lmdb', 'mongodb'] as const;

interface Handle {
  readonly store: Store;
  readonly slots: Slots;
}

/** One store through two handles, as two processes have it, filled; null, and the test skipped, where there is none. */
async function twoHandles(t: TestContext, name: StoreName): Promise<[Handle, Handle] | null> {
  const open = name === 'lmdb' ? await lmdbOpener(t) : await mongoOpener(t);
  if (!open) return null;
  const handles: [Handle, Handle] = [await open(), await open()];
  await fill(handles[0].store);
  return handles;
}

async function lmdbOpener(t: TestContext): Promise<() => Promise<Handle>> {
  const directory = await testDirectory(t);
  return async () => {
    const handle = await openDirectory(directory);
    t.after(() => handle.store.close());
    return handle;
  };
}

async function openDirectory(directory: string): Promise<Handle> {
  const slots = new Slots();
  return { store: await openLmdb({ directory, slots }), slots };
}

async function mongoOpener(t: TestContext): Promise<(() => Promise<Handle>) | null> {
  const uri = await testMongo(t);
  return uri === null ? null : () => openStore(t, uri);
}

async function fill({ items }: Store): Promise<void> {
  const { refused } = await items.insert(
    ROWS.map((row) => BSON.serialize(row)),
    'fail',
  );
  assert.deepEqual(refused, []);
}

interface WorkerOptions {
  readonly now?: () => Date;
  /** Called before a file is begun. */
  readonly begins: (name: string) => void | Promise<void>;
}

/** An exporter that looks nowhere by itself and never renews a lease: the test is its queue. */
function workerOn({ store, slots }: Handle, { begins, now = () => new Date() }: WorkerOptions) {
  const { items, files } = store;
  const jobs = new Jobs({ records: store.exports, perClient: 100, now });
  const watched: FileStore = {
    create: async (name) => {
      await begins(name);
      return files.create(name);
    },
    read: (...range) => files.read(...range),
    size: (name) => files.size(name),
    remove: (name) => files.remove(name),
    names: () => files.names(),
  };
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const { transcoder } = createTranscoder(slots);
  let work: Work = () => Promise.resolve(null);
  const exporter = new Exporter({
    ...{ jobs, files: watched, items, lasting: items, transcoder, now, log },
    leaseMs: LEASE_MS,
    ttlMs: LEASE_MS * 100,
    pause: async (_, signal) => {
      await once(signal, 'abort');
      throw signal.reason;
    },
    openQueue: (options) => {
      ({ work } = options);
      return { add: () => Promise.resolve(), close: () => Promise.resolve() };
    },
  });
  return { jobs, files, work, close: () => exporter.close() };
}

async function textOf(files: FileStore, name: string, bytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of files.read(name, 0, bytes)) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString();
}

for (const name of STORES)
  test(`${name}: of two workers, each told of a job five times, one works on it; told again, none does`, async (t) => {
    const handles = await twoHandles(t, name);
    if (!handles) return;
    const begun: string[] = [];
    const [one, other] = handles.map((handle) =>
      workerOn(handle, { begins: (file) => void begun.push(file) }),
    );
    assert.ok(one && other);
    const { signal } = new AbortController();
    const jobs = await Promise.all([1, 2, 3].map(() => one.jobs.create('ada', REQUEST, signal)));
    const tellAll = () =>
      Promise.all(
        jobs.flatMap(({ id }) => [one, other].flatMap(({ work }) => [1, 2, 3, 4, 5].map(() => work(id)))),
      );
    await tellAll();
    assert.deepEqual(
      begun.map((file) => file.split('.')[0]).toSorted(),
      jobs.map(({ id }) => id).toSorted(),
      'one file for each job',
    );
    const done = await Promise.all(jobs.map(({ id }) => other.jobs.get(id, signal)));
    for (const job of done) {
      assert.ok(job?.state === 'complete');
      const { rows, bytes, crc32: crc } = job.file;
      assert.deepEqual([rows, bytes, crc], [ROWS.length, TEXT.length, crc32(Buffer.from(TEXT))]);
      assert.equal(await textOf(other.files, job.file.name, bytes), TEXT);
    }
    assert.deepEqual(new Set(await tellAll()), new Set([null]), 'there is nothing to do');
    assert.equal(begun.length, jobs.length);
    assert.deepEqual(await Promise.all(jobs.map(({ id }) => one.jobs.get(id, signal))), done);
    assert.deepEqual((await one.files.names()).toSorted(), begun.toSorted());
    assert.deepEqual(
      handles.map(({ slots }) => slots.taken),
      [0, 0],
    );
    await Promise.all([one.close(), other.close()]);
  });

for (const name of STORES)
  test(`${name}: a worker held up for longer than its lease spoils nothing of who took over`, async (t) => {
    const handles = await twoHandles(t, name);
    if (!handles) return;
    let time = Date.now();
    const now = () => new Date(time);
    let begins = (): void => undefined;
    const hasBegun = new Promise<void>((resolve) => (begins = resolve));
    let goOn = (): void => undefined;
    const held = new Promise<void>((resolve) => (goOn = resolve));
    const slow = workerOn(handles[0], {
      now,
      begins: () => {
        begins();
        return held;
      },
    });
    const next = workerOn(handles[1], { now, begins: () => undefined });
    const { signal } = new AbortController();
    const { id } = await slow.jobs.create('ada', REQUEST, signal);
    const working = slow.work(id);
    await hasBegun;
    assert.equal(await next.work(id), LEASE_MS, 'the lease holds so long yet');
    time += LEASE_MS;
    assert.equal(await next.work(id), null);
    const done = await next.jobs.get(id, signal);
    goOn();
    assert.equal(await working, null);
    assert.deepEqual(await next.jobs.get(id, signal), done);
    assert.ok(done?.state === 'complete');
    assert.deepEqual(await next.files.names(), [done.file.name], 'what it wrote is gone');
    assert.equal(await textOf(next.files, done.file.name, done.file.bytes), TEXT);
    await Promise.all([slow.close(), next.close()]);
  });

for (const name of STORES)
  test(`${name}: of two processes on a port each export is made by one, and each hands out the files of both`, async (t) => {
    const DATA_DIR = await testDirectory(t);
    const MONGODB_URI = name === 'lmdb' ? '' : await testMongo(t);
    if (MONGODB_URI === null) return;
    const { store } = name === 'lmdb' ? await openDirectory(DATA_DIR) : await openStore(t, MONGODB_URI);
    await fill(store);
    await store.close();
    const server = await childServer(t, { WORKERS: '2', DATA_DIR, MONGODB_URI, EXPORT_CONCURRENCY: '1' });
    await logged(server, 'listening'); // the second one
    const url = server.url.origin;
    const anew = { connection: 'close' }; // the kernel spreads connections over the processes
    const orders = await Promise.all(Array.from({ length: 8 }, () => order(url, REQUEST, anew)));
    for (const { id } of orders) {
      const done = await awaited(url, id, undefined, anew);
      for (let times = 0; times < 3; times++) assert.equal(String(await fileOf(url, done, anew)), TEXT);
    }
    await server.end('SIGTERM');
    const completed: string[] = [];
    const asked = { order: new Set<number>(), file: new Set<number>() };
    for await (const { msg, export: id, path, method, pid } of server.log) {
      if (msg === 'an export is complete') completed.push(id ?? '');
      if (method === 'POST') asked.order.add(pid);
      if (path?.endsWith('/file')) asked.file.add(pid);
    }
    assert.deepEqual(completed.toSorted(), orders.map(({ id }) => id).toSorted());
    assert.deepEqual([asked.order.size, asked.file.size], [2, 2], 'both processes were asked');
  });
