import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { pino } from 'pino';
import { storeUnavailable } from '../../src/base/errors.ts';
import type { Store } from '../../src/store/store.ts';
import { withOverrides } from '../support/store/with-overrides.ts';
import { jsonOf, type Page } from '../support/answers.ts';
import { keyedServer } from '../support/access/keyed.ts';
import { childServer } from '../support/process/child-server.ts';
import { sluice } from '../support/process/commands.ts';
import { fetchUntilCut } from '../support/faults/cutter.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { resourcesFile } from '../support/resources/resources.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';
import { temporaryFolder } from '../support/directory.ts';

/** Longer than a server takes to see a change by itself on a busy machine. Milliseconds. */
const SEEN_MS = 30_000;

/** Small batches of which the second waits until it is released. */
function slowReads() {
  const arrived = new EventEmitter();
  let release = (): void => undefined;
  let count = 0;
  const released = new Promise<void>((resolve) => (release = resolve));
  const tapStore = (store: Store) =>
    withOverrides(store, {
      open: async (declaration) => {
        const rows = await store.open(declaration);
        const read: typeof rows.read = async (plan, from, size, signal) => {
          if (from.after) {
            count++;
            arrived.emit('arrived');
            await released;
          }
          return rows.read(plan, from, { ...size, rows: Math.min(size.rows, 25) }, signal);
        };
        return withOverrides(rows, { read });
      },
    });
  const held = async (reads: number) => {
    while (count < reads) await once(arrived, 'arrived');
  };
  return { tapStore, held, release: () => release() };
}

type Asked = Pick<TestServer, 'get'>;

async function statusOf(server: Asked, path: string): Promise<number> {
  const response = await server.get(path);
  await response.arrayBuffer();
  return response.status;
}

/** Asks until a path is answered so. */
async function untilStatus(server: Asked, path: string, status: number): Promise<void> {
  const began = performance.now();
  while ((await statusOf(server, path)) !== status)
    assert.ok(performance.now() - began < SEEN_MS, `${path} was never answered by ${status}`);
}

async function names(server: TestServer): Promise<readonly string[]> {
  const { resources } = (await jsonOf(server.get('/resources'))) as { resources: { name: string }[] };
  return resources.map(({ name }) => name);
}

async function reasons(server: TestServer): Promise<string> {
  return String(((await jsonOf(server.get('/readyz'))) as { reasons: readonly string[] }).reasons);
}

/** The rows of a page. */
async function rowsOf(answer: Promise<Response>): Promise<readonly object[]> {
  return ((await jsonOf(answer)) as Page).data;
}

/** A database beside that of the URI, which is dropped after the test. Null, and the test is skipped, without a mongod. */
async function withCrm(t: TestContext) {
  const uri = await testMongo(t);
  if (uri === null) return null;
  t.after(() => crm.dropDatabase()); // before its client is closed
  const client = testClient(t, uri);
  const crm = client.db(`${client.db().databaseName}_crm`);
  return { uri, crm };
}

test('a database is exposed by a pattern: its collections come and go while the server runs', async (t) => {
  const made = await withCrm(t);
  if (!made) return;
  const { uri, crm } = made;
  const insert = (name: string) => crm.collection(name).insertMany([{ n: 1 }, { n: 2 }]);
  await Promise.all(['customers', 'secrets', 'tmp_1', 'docs'].map(insert));
  await crm.createCollection('view', { viewOn: 'customers', pipeline: [] });
  const database = crm.databaseName;
  const server = await serverOn(t, {
    MONGODB_URI: uri,
    RATE_LIMIT: 'off',
    EXPOSE: `${database}.*, !${database}.secrets, !${database}.tmp_*`,
  });
  const served = async () => (await names(server)).filter((name) => name !== 'items' && name !== 'users');
  assert.deepEqual(
    await served(),
    ['customers'],
    'neither what is excluded, nor a view, nor a name that is taken',
  );

  await Promise.all(['orders', 'tmp_2'].map(insert));
  await untilStatus(server, '/orders', 200);
  assert.deepEqual((await served()).toSorted(), ['customers', 'orders']);
  const document = (await jsonOf(server.get('/openapi.json'))) as { paths: object };
  assert.ok('/orders/stream' in document.paths);
  assert.equal(await statusOf(server, '/tmp_2'), 404);

  await crm.dropCollection('customers');
  await untilStatus(server, '/customers', 404);
  assert.deepEqual(await served(), ['orders']);
  assert.equal(await reasons(server), '');
  await insert('customers');
  assert.equal(await server.reload(), true);
  assert.equal(await statusOf(server, '/customers'), 200);
});

test('what is declared by its name is no longer found by a pattern, and a list that fails takes nothing away', async (t) => {
  const made = await withCrm(t);
  if (!made) return;
  const { uri, crm } = made;
  const database = crm.databaseName;
  for (const name of ['orders', 'people']) await crm.collection(name).insertOne({ n: 1, card: 'secret' });
  const patrons = { collection: `${database}.people`, hide: ['card'] };
  const RESOURCES_FILE = await resourcesFile(t, { resources: { patrons } });
  let isAway = false;
  const tapStore = (store: Store) =>
    withOverrides(store, {
      list: (name) =>
        isAway && name === database ? Promise.reject(storeUnavailable('away')) : store.list(name),
    });
  const settings = { MONGODB_URI: uri, EXPOSE: `${database}.*`, RESOURCES_FILE };
  const server = await serverOn(t, settings, { tapStore });
  assert.equal(await statusOf(server, '/people'), 404, 'its card would be seen');
  assert.deepEqual((await rowsOf(server.get('/patrons'))).map(Object.keys), [['id', 'n']]);
  isAway = true;
  assert.equal(await server.reload(), false);
  assert.equal(await statusOf(server, '/orders'), 200);
  assert.equal(await statusOf(server, '/patrons'), 200);
});

/** A database of which a server cannot list the collections until `answer` is called. Null, and the test is skipped, without a mongod. */
async function unlisted(t: TestContext) {
  const made = await withCrm(t);
  if (!made) return null;
  let isAway = true;
  const tapStore = (store: Store) =>
    withOverrides(store, {
      list: (name) => (isAway ? Promise.reject(storeUnavailable('away')) : store.list(name)),
    });
  return { ...made, tapStore, answer: () => void (isAway = false) };
}

test('what a pattern may name is 503 while its collections are not known, and 404 once they are', async (t) => {
  const made = await unlisted(t);
  if (!made) return;
  const { uri, crm, tapStore, answer } = made;
  await crm.collection('orders').insertOne({ n: 1 });
  const EXPOSE = `${crm.databaseName}.*, !${crm.databaseName}.secrets`;
  const server = await serverOn(t, { MONGODB_URI: uri, EXPOSE }, { tapStore });
  for (const path of ['/orders', '/orders/stream', '/nothing', '/changes?resources=orders'])
    assert.equal(await statusOf(server, path), 503, path);
  const { headers } = await server.get('/orders');
  assert.match(headers.get('retry-after') ?? '', /^\d+$/);
  for (const path of ['/secrets', '/a%20b', '/api/nothing'])
    assert.equal(await statusOf(server, path), 404, path);
  answer();
  assert.equal(await server.reload(), true);
  assert.equal(await statusOf(server, '/orders'), 200);
  assert.equal(await statusOf(server, '/nothing'), 404);
});

test('keys that name resources of a pattern do not stop a start without MongoDB, and are checked once it answers', async (t) => {
  const made = await unlisted(t);
  if (!made) return;
  const { uri, crm, tapStore, answer } = made;
  await crm.collection('orders').createIndex({ tenant: 1, _id: 1 });
  await crm.collection<{ _id: number; tenant: string }>('orders').insertMany([
    { _id: 1, tenant: 'a' },
    { _id: 2, tenant: 'b' },
  ]);
  const key = (resource: string) => ({ name: 'ada', where: { [resource]: { tenant: 'a' } } });
  const settings = { RESOURCES_FILE: '', EXPOSE: `${crm.databaseName}.*`, MONGODB_URI: uri };
  const server = await keyedServer(t, 'mongodb', [key('orders')], [], settings, { tapStore });
  assert.ok(server);
  assert.equal((await server.as('ada', '/orders')).status, 503);
  answer();
  assert.equal(await server.reload(), true);
  assert.deepEqual(await rowsOf(server.as('ada', '/orders')), [{ id: 1, tenant: 'a' }]);
  assert.equal(await server.rewrite([key('nothing')]), false, 'a name that no collection has');
});

test('a fault is logged once, however often it is met', async (t) => {
  const RESOURCES_FILE = await resourcesFile(t, { resources: {} });
  const lines: string[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) });
  const server = await serverOn(t, { MONGODB_URI: '', RESOURCES_FILE }, { log });
  await writeFile(RESOURCES_FILE, '{');
  for (let n = 0; n < 3; n++) assert.equal(await server.reload(), false);
  assert.equal(lines.length, 1, lines.join(''));
});

test('each collection of a pattern that is left out is named once, with the reason and what to do', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const db = testClient(t, uri).db();
  await Promise.all(
    ['orders', 'livez', 'Order Items'].map((name) => db.collection(name).insertOne({ n: 1 })),
  );
  await db.createCollection('paid', { viewOn: 'orders' });
  await db.createCollection('secret', { viewOn: 'orders' });
  await db.createCollection('ticks', { timeseries: { timeField: 't' } });
  await db.createCollection('german', { collation: { locale: 'de' } });
  await db.collection('users').insertOne({ n: 1 });
  const left = new Map<string, string>();
  const write = (line: string): void => {
    const { msg, reason = '' } = JSON.parse(line) as { msg: string; reason?: string };
    const [, name] = /^\/(.*) is not served$/.exec(msg) ?? [];
    assert.ok(name === undefined || !left.has(name), `${name} is named once`);
    if (name !== undefined) left.set(name, reason);
  };
  const log = pino({ level: 'warn' }, { write });
  const server = await serverOn(t, { MONGODB_URI: uri, EXPOSE: '*,!secret' }, { log });
  await server.reload();
  const wanted = {
    german: /default collation \(de\).*\$merge/,
    'Order Items': /cannot be a segment of a URL; RESOURCES_FILE can give another name/,
    livez: /taken by a route of the server; RESOURCES_FILE can give another name/,
    paid: /it is a view.*\$merge/,
    ticks: /it is a time series.*\$merge/,
    users: /keeps its own records there, unless MONGODB_PREFIX gives them other names/,
  };
  assert.deepEqual([...left.keys()].sort(), Object.keys(wanted).sort());
  for (const [name, reason] of Object.entries(wanted)) assert.match(left.get(name) ?? '', reason);
});

test('a collection that is exposed by its name and is dropped gets 404 until there is one again', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const db = testClient(t, uri).db();
  await Promise.all(['orders', 'notes'].map((name) => db.collection(name).insertOne({ n: 1 })));
  const server = await serverOn(t, { MONGODB_URI: uri, EXPOSE: 'orders,notes' });
  await db.dropCollection('orders');
  assert.equal(await server.reload(), true);
  assert.equal(await statusOf(server, '/orders'), 404);
  assert.equal(await statusOf(server, '/notes'), 200);
  assert.equal(await reasons(server), '');
  await db.collection('orders').insertOne({ n: 2 });
  assert.equal(await server.reload(), true);
  assert.equal(await statusOf(server, '/orders'), 200);
});

test('a changed RESOURCES_FILE is served: what goes is cut, what stays goes on, and a wrong edit changes nothing', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const db = testClient(t, uri).db();
  const rows = Array.from({ length: 500 }, (_, n) => ({ n, card: `c${n}` }));
  for (const name of ['orders', 'notes', 'people'])
    await db.collection(name).insertMany(rows.map((row) => ({ ...row })));
  const RESOURCES_FILE = await resourcesFile(t, { resources: { orders: {}, notes: {} } });
  const write = (resources: object) => writeFile(RESOURCES_FILE, JSON.stringify({ resources }));
  const { tapStore, held, release } = slowReads();
  const server = await serverOn(t, { MONGODB_URI: uri, RESOURCES_FILE, RATE_LIMIT: 'off' }, { tapStore });
  const streams = ['/orders/stream', '/notes/stream'].map((path) => fetchUntilCut(server.url + path));
  await held(2);
  const since = (await server.get('/orders/stream?checkpoints=true')).headers.get('changes-from') ?? '';
  const followed = fetchUntilCut(`${server.url}/orders/changes?since=${since}&follow=true`);

  await write({ orders: { hide: ['card'], nope: 1 }, people: {} });
  assert.equal(await server.reload(), false);
  assert.match(await reasons(server), /those of before stay.*\/resources\/orders\/nope/);
  assert.equal(await statusOf(server, '/people'), 404);
  await write({ people: {}, missing: {} });
  assert.equal(await server.reload(), false);
  assert.match(await reasons(server), /missing.*does not exist/);
  assert.equal(await statusOf(server, '/people'), 404);

  await write({ notes: {}, people: { hide: ['card'] } });
  await untilStatus(server, '/people?limit=1', 200);
  assert.equal(await reasons(server), '');
  assert.equal(await statusOf(server, '/orders'), 404);
  assert.deepEqual((await rowsOf(server.get('/people?limit=1'))).map(Object.keys), [['id', 'n']]);
  assert.equal((await followed).whole, true, 'a follower ends behind a checkpoint');
  release();
  const [cut, whole] = await Promise.all(streams);
  assert.equal(cut?.whole, false);
  assert.deepEqual([whole?.whole, whole?.bytes.toString().trim().split('\n').length], [true, 500]);

  await write({ notes: { hide: ['card', 'n'] }, people: { hide: ['card'] } });
  assert.equal(await server.reload(), true);
  assert.deepEqual((await rowsOf(server.get('/notes?limit=1'))).map(Object.keys), [['id']]);
});

test('an import into a new resource is served by all processes of a running server', async (t) => {
  const DATA_DIR = await temporaryFolder(t);
  const settings = { MONGODB_URI: '', DATA_DIR, WORKERS: '2', RATE_LIMIT: 'off' };
  const server = await childServer(t, settings);
  const file = join(await temporaryFolder(t), 'people.csv');
  await writeFile(file, 'id,name\n1,Ada\n2,Bob\n');
  const { code, said } = await sluice(['import', file, '--into', 'people', '--id', 'id'], { DATA_DIR });
  assert.equal(code, 0, said);
  const get = (path: string) => fetch(new URL(path, server.url), { headers: { connection: 'close' } });
  // The kernel spreads new connections over the processes: this often, it has asked each.
  for (let n = 0; n < 40; n++) await untilStatus({ get }, '/people', 200);
});

test('RESOURCES_FILE cannot add items later', async (t) => {
  const RESOURCES_FILE = await resourcesFile(t, { resources: {} });
  const server = await serverOn(t, { MONGODB_URI: '', RESOURCES_FILE });
  await writeFile(RESOURCES_FILE, JSON.stringify({ resources: { items: {} } }));
  assert.equal(await server.reload(), false);
  assert.match(await reasons(server), /items is read at the start only/);
});
