import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { pino } from 'pino';
import type { Collection } from 'mongodb';
import type { Export } from '../../src/exports/export.ts';
import type { ExportRequest } from '../../src/exports/job.ts';
import { requestOf } from '../../src/exports/order.ts';
import { exportSources } from '../../src/exports/order.ts';
import { parseJson } from '../../src/input/body-json.ts';
import type { OpenResource } from '../../src/resources/open.ts';
import { keptBy, locatedOf } from '../../src/resources/locate.ts';
import { ServedResources, type ServedOptions } from '../../src/resources/served.ts';
import type { Document } from '../../src/store/values/bson.ts';
import { ReadTurns } from '../../src/store/turns/read-turns.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { streamReader } from '../../src/store/turns/readers.ts';
import { bearer, keyedServer } from '../support/access/keyed.ts';
import { problemOf, textOf } from '../support/answers.ts';
import { handleOf, openDirectory, Worker, type Handle } from '../support/exports/export-worker.ts';
import { awaited, exportedAsStreamed, fileOf, order, post, type Body } from '../support/exports/exports.ts';
import { openStore, testClient } from '../support/store/mongo/mongo.ts';
import { itemsOf } from '../support/resources/items-resource.ts';
import { ORDER_INDEXES, ordersOf, withOrders } from '../support/resources/orders.ts';
import { filled, resourcesFile } from '../support/resources/resources.ts';
import { until } from '../support/store/changes.ts';
import { testRedis } from '../support/redis/redis.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';

const STORES = ['sqlite', 'mongodb'] as const;
const FEW = ordersOf(600);

const refusalOf = (server: TestServer, body: object) => problemOf(post(server.url, body));

for (const store of STORES)
  test(`${store}: an export of a resource is the stream of the same query as a file`, async (t) => {
    const settings = await withOrders(t, store, FEW);
    if (!settings) return;
    const redis = store === 'mongodb' ? await testRedis(t) : null; // the other queue
    const server = await serverOn(t, {
      ...settings,
      EXPORT_LIMIT: '100',
      ...(redis && { REDIS_URL: redis.url }),
    });
    const orders: Body[] = [
      { resource: 'orders' },
      { resource: 'orders', status: 'größe', sort: 'createdAt_asc', format: 'json', compression: 'gzip' },
      {
        resource: 'orders',
        status: 'paid',
        sort: 'createdAt_desc',
        'createdAt.gte': '2026-01-05',
        'createdAt.lt': '2026-01-20',
        fields: ['customer.country', 'total'],
        format: 'csv',
        safe: true,
        compression: 'br',
      },
      { resource: 'orders', 'total.gte': 500, 'total.lt': 700, format: 'csv' },
      { resource: 'orders', total: null },
      { resource: 'orders', status: 'none', sort: 'createdAt_desc' },
    ];
    for (const body of orders) {
      const { done } = await exportedAsStreamed(server.url, body);
      assert.match(done.file?.name ?? '', /^orders-[0-9a-f]{8}\./);
      assert.equal(done.consistency, store === 'sqlite' ? 'live' : 'snapshot');
    }
    const [, , third] = orders;
    const list = (await (await server.get('/exports')).json()) as { data: Export[] };
    assert.deepEqual(list.data[3]?.request, third, 'a request is shown as it was given');
    assert.deepEqual(list.data[2]?.request, {
      resource: 'orders',
      'total.gte': '500',
      'total.lt': '700',
      sort: 'total_asc',
      format: 'csv',
      compression: 'none',
    });
    const preferred = await server.get('/orders/stream?total.lt=9&fields=total', { Prefer: 'respond-async' });
    assert.equal(preferred.status, 202);
    const { id, request } = (await preferred.json()) as Export;
    assert.deepEqual(request, {
      resource: 'orders',
      'total.lt': '9',
      sort: 'total_asc',
      fields: ['total'],
      format: 'ndjson',
      compression: 'none',
    });
    const done = await awaited(server.url, id);
    const stream = await textOf(server.get('/orders/stream?total.lt=9&fields=total'));
    assert.equal(String(await fileOf(server.url, done)), stream);
    await server.close();
    assert.equal(server.slots.taken, 0);
  });

test('an order that a resource cannot fulfil is refused with its reason', async (t) => {
  const indexes = [...ORDER_INDEXES, ['ref']]; // its values have two types
  const settings = await filled(t, 'sqlite', [{ name: 'orders', rows: FEW, indexes }]);
  const RESOURCES_FILE = await resourcesFile(t, { resources: { items: {} } });
  const server = await serverOn(t, { ...settings, RESOURCES_FILE });
  const faults: [body: object, pointer: string, detail: RegExp][] = [
    [{ resource: 'none' }, '/resource', /expected one of items, orders; got "none"/],
    [{ resource: 7 }, '/resource', /expected one of items, orders/],
    [{ resource: 'orders', limit: 7 }, '/limit', /limit\.eq/],
    [{ resource: 'orders', status: ['new'] }, '/status', /expected a string, a number/],
    [{ resource: 'orders', total: 'date:soon' }, '/total', /date/],
    [{ resource: 'orders', 'total.gte': 'int:x' }, '/total.gte', /whole number/],
    [{ resource: 'orders', 'total.gte': 1, 'total.gt': 1 }, '/total.gt', /two lower bounds/],
    [{ resource: 'orders', heartbeat: 7 }, '/heartbeat', /heartbeat\.eq/],
    [{ resource: 'orders', sort: 'total' }, '/sort', /a path and _asc or _desc/],
    [{ resource: 'orders', safe: true }, '/safe', /requires format=csv/],
    [{ resource: 'orders', fields: ['a..b'] }, '/fields/0', /name or path of a field/],
    [{ resource: 'items', status: 'new' }, '/status', /unknown field/],
    [{}, '/resource', /expected one of items, orders; got none/],
    [{ category: 'Fair' }, '/resource', /expected one of items, orders; got none/],
  ];
  for (const [body, pointer, detail] of faults) {
    const { status, code, errors } = await refusalOf(server, body);
    assert.deepEqual([status, code, errors?.[0]?.pointer], [422, 'invalid-body', pointer]);
    assert.match(errors?.[0]?.detail ?? '', detail);
  }
  const unindexed = await refusalOf(server, { resource: 'orders', status: 'new', sort: 'total_asc' });
  for (const name of ['constructor', 'toString', 'hasOwnProperty.gte']) {
    const body = JSON.parse(`{"resource":"orders",${JSON.stringify(name)}:"x"}`) as object;
    assert.equal((await refusalOf(server, body)).code, 'not-indexed', name);
  }
  assert.deepEqual([unindexed.status, unindexed.code], [400, 'not-indexed']);
  assert.match(unindexed.detail, /sluice index orders status,total/);
  assert.equal((await refusalOf(server, { resource: 'orders', ref: 42 })).code, 'ambiguous-value');
  for (const body of [{ resource: 'items' }, { resource: 'orders', ref: 'str:42' }])
    assert.equal((await post(server.url, body)).status, 202);
});

test('an order without a resource means the only one that its client has', async (t) => {
  const keys = [{ name: 'all' }, ...ONE.map((name) => ({ name, resources: [name] }))];
  const server = await keyedServer(t, 'sqlite', keys, [{ name: 'orders', rows: FEW, indexes: [] }]);
  for (const name of ONE) {
    const { request } = await server.exported(name, {});
    assert.equal(request.resource, name);
    const document = await textOf(server.as(name, '/openapi.json'));
    const { example } = bodyIn(JSON.parse(document));
    assert.equal((await server.exported(name, example)).request.resource, name, 'the documented order');
    assert.deepEqual(example, { resource: name, format: 'csv', compression: 'gzip' }, 'it names no other');
  }
  const refused = await problemOf(post(server.url, {}, bearer('all')));
  assert.deepEqual([refused.status, refused.errors?.[0]?.pointer], [422, '/resource']);
  assert.match(refused.detail, /expected one of items, orders; got none/);
});

const ONE = ['items', 'orders'] as const;

/** What a document says of the body of an order. */
function bodyIn(document: unknown): { readonly example: object } {
  const { paths } = document as { paths: { '/exports': { post: { requestBody: { content: object } } } } };
  const [content] = Object.values(paths['/exports'].post.requestBody.content) as { example: object }[];
  return content ?? assert.fail();
}

test('what is hidden is in no export', async (t) => {
  const settings = await withOrders(t, 'mongodb', FEW);
  if (!settings?.MONGODB_URI) return;
  const hide = ['customer.card', 'note'];
  const RESOURCES_FILE = await resourcesFile(t, { resources: { sales: { collection: 'orders', hide } } });
  const { MONGODB_URI } = settings;
  const server = await serverOn(t, { MONGODB_URI, RESOURCES_FILE, EXPORT_LIMIT: '100' });
  for (const format of ['ndjson', 'json', 'csv'])
    for (const fields of [undefined, ['customer', 'note', 'customer.card']]) {
      const { id } = await order(server.url, { resource: 'sales', format, ...(fields && { fields }) });
      const done = await awaited(server.url, id);
      const text = String(await fileOf(server.url, done));
      assert.match(text, /country/);
      assert.doesNotMatch(text, /secret|quoted/, `${format} ${String(fields)}`);
    }
  const refused = await refusalOf(server, { resource: 'sales', note: 'x' });
  assert.equal(refused.code, 'not-indexed');
});

/** The resources of a store, opened as a server does. */
async function resourcesOf({ store }: Handle): Promise<readonly OpenResource[]> {
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const declared =
    store.name === 'sqlite' ? [] : [{ name: 'orders', collection: 'orders', place: 'the test' }];
  const streamsOf: ServedOptions['streamsOf'] = (rows) =>
    streamReader(rows, new ReadTurns(), { retryMs: 10_000 });
  const kept = async () => (await keptBy(store)).flatMap((one) => locatedOf(one) ?? []);
  const { now } = await ServedResources.open({
    store,
    streamsOf,
    slots: new Slots(),
    log,
    kept,
    declared: () => declared,
  });
  return now;
}

async function open(t: TestContext, { DATA_DIR = '' }: Record<string, string>): Promise<Handle> {
  const handle = await openDirectory(DATA_DIR);
  t.after(() => handle.store.close());
  return handle;
}

const PAID = { resource: 'orders', status: 'paid', sort: 'createdAt_desc', fields: ['total'] };

function requestFor(
  { store }: Handle,
  open: readonly OpenResource[],
  body: object,
  signal: AbortSignal,
): Promise<ExportRequest> {
  const sources = exportSources([...open, itemsOf(store)]);
  return requestOf(parseJson(Buffer.from(JSON.stringify(body))), sources, signal);
}

/** The lines of the rows that PAID asks for. */
function paidLines(rows: readonly Document[]): string {
  const time = ({ createdAt }: Document) => (createdAt as Date).getTime();
  return rows
    .filter(({ status }) => status === 'paid')
    .sort((a, b) => time(b) - time(a) || (String(a._id) < String(b._id) ? 1 : -1))
    .map(({ _id, total }) => `${JSON.stringify({ id: String(_id), total: total as number })}\n`)
    .join('');
}

/** Works on a job until nothing is left to do, however long its pauses are. Resolves with the pauses. */
async function workOn(worker: Worker, id: string, pass: (ms: number) => void): Promise<number[]> {
  const pauses: number[] = [];
  for (let wait = await worker.work(id); wait !== null; wait = await worker.work(id)) {
    pauses.push(wait);
    pass(wait);
  }
  return pauses;
}

interface Harm {
  readonly code: string;
  readonly detail: RegExp;
  readonly harm: (rows: Collection) => Promise<unknown>;
}

const HARM: Readonly<Record<string, Harm>> = {
  'an array arrives in the order': {
    code: 'not-indexed',
    detail: /array/,
    harm: (rows) => rows.updateOne({ status: 'new' }, { $set: { createdAt: [new Date(0), new Date(1)] } }),
  },
  'its index is dropped': {
    code: 'not-indexed',
    detail: /status with sort=createdAt|createIndex/,
    harm: (rows) => rows.dropIndex('status_1_createdAt_1__id_1'),
  },
  'the collection is replaced': {
    code: 'collection-replaced',
    detail: /dropped, renamed or replaced/,
    harm: async (rows) => {
      await rows.drop();
      await rows.insertMany(FEW);
      await rows.createIndex({ status: 1, createdAt: 1, _id: 1 });
    },
  },
};

for (const [what, { code, detail, harm }] of Object.entries(HARM))
  test(`an export of a resource fails and never completes when ${what} while it runs`, async (t) => {
    const settings = await withOrders(t, 'mongodb', ordersOf(45_000));
    if (!settings?.MONGODB_URI) return;
    const handle = await handleOf(await openStore(t, settings.MONGODB_URI));
    const collection = testClient(t, settings.MONGODB_URI).db().collection('orders');
    let time = Date.now();
    let isHarmed = false;
    const worker: Worker = new Worker(handle, {
      now: () => new Date(time),
      resources: await resourcesOf(handle),
      writes: async (piece) => {
        if (piece !== 1 || isHarmed) return;
        isHarmed = true;
        await harm(collection);
      },
    });
    const whole = { ...PAID, fields: undefined }; // more bytes than are read before the first are written
    const request = await requestFor(handle, await resourcesOf(handle), whole, t.signal);
    const { id } = await worker.jobs.create('ada', () => Promise.resolve(request), t.signal);
    await workOn(worker, id, (ms) => (time += ms));
    const job = await worker.jobs.get(id, t.signal);
    assert.ok(isHarmed);
    assert.ok(job?.state === 'failed', JSON.stringify(job));
    assert.equal(job.failure.code, code, job.failure.detail);
    assert.match(job.failure.detail, detail);
    assert.deepEqual(await worker.files.names(), [], 'nothing is left');
    await worker.close();
    // A batch that was read ahead is given back when it comes.
    await until('no slot is taken', () => Promise.resolve(handle.slots.taken === 0));
  });

test('an export whose resource is no longer declared fails with that reason, and waits for a server that has it', async (t) => {
  const settings = await withOrders(t, 'sqlite', FEW);
  const handle = await open(t, settings);
  let time = Date.now();
  const now = () => new Date(time);
  const has = new Worker(handle, { now, resources: await resourcesOf(handle) });
  const lacks = new Worker(handle, { now });
  const request = await requestFor(handle, await resourcesOf(handle), PAID, t.signal);
  const lost = await has.jobs.create('ada', () => Promise.resolve(request), t.signal);
  const kept = await has.jobs.create('ada', () => Promise.resolve(request), t.signal);
  assert.deepEqual(await workOn(lacks, lost.id, (ms) => (time += ms)), [1_000, 2_000, 4_000, 8_000]);
  const failed = await lacks.jobs.get(lost.id, t.signal);
  assert.ok(failed?.state === 'failed');
  assert.equal(failed.failure.code, 'not-found');
  assert.match(failed.failure.detail, /resource orders is no longer declared/);
  assert.equal(await lacks.work(kept.id), 1_000);
  time += 1_000;
  assert.equal(await has.work(kept.id), null);
  assert.equal(await has.textOf(await has.jobs.get(kept.id, t.signal)), paidLines(FEW));
  await Promise.all([has.close(), lacks.close()]);
});

test('the first export creates its collections, under the prefix, and the log has a line for each', async (t) => {
  const settings = await withOrders(t, 'mongodb', FEW);
  if (!settings?.MONGODB_URI) return;
  const db = testClient(t, settings.MONGODB_URI).db();
  await db.collection('users').insertOne({ name: 'of the application' });
  const names = async () => (await db.listCollections().toArray()).map(({ name }) => name).toSorted();
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) });
  const server = await serverOn(t, { ...settings, EXPOSE: 'orders,users', MONGODB_PREFIX: 'own_' }, { log });
  assert.deepEqual(((await (await server.get('/exports')).json()) as { data: Export[] }).data, []);
  assert.equal((await server.get('/users')).status, 200, "a collection of the application's own");
  assert.deepEqual(((await (await server.get('/api/users')).json()) as { data: Export[] }).data, []);
  assert.deepEqual(await names(), ['orders', 'users'], 'nothing is created by reads');
  const { id } = await order(server.url, { resource: 'orders' });
  await fileOf(server.url, await awaited(server.url, id));
  const created = ['own_exports', 'own_exports.chunks', 'own_exports.files'];
  assert.deepEqual(await names(), ['orders', ...created, 'users'].toSorted());
  const second = await order(server.url, { resource: 'orders' });
  await awaited(server.url, second.id);
  const messages = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
  for (const name of created)
    assert.equal(
      messages.filter((line) => line.includes(`has created the collection '${db.databaseName}.${name}'`))
        .length,
      1,
      name,
    );
});
