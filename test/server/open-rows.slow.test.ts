import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Faults } from '../../src/base/errors.ts';
import type { Bookmark } from '../../src/store/bookmark.ts';
import { BSON } from '../../src/store/values/bson.ts';
import { bearer, keysText } from '../support/access/keys-text.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { sluice } from '../support/process/commands.ts';
import { makeOldItems } from '../support/store/sqlite/sqlite.ts';
import { withOrders } from '../support/resources/orders.ts';
import { resourcesFile } from '../support/resources/resources.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';
import { temporaryFolder } from '../support/directory.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';

const SAMPLE_ROWS = 53_940;

interface Served {
  readonly resources: readonly { readonly name: string; readonly rows?: number }[];
}

/** What GET /resources lists, with the number of rows. OpenAPI has the paths of the same, and others are 404. */
async function served(server: TestServer): Promise<Record<string, number | undefined>> {
  const { resources } = (await (await server.get('/resources')).json()) as Served;
  const { paths } = (await (await server.get('/openapi.json')).json()) as { paths: object };
  for (const [name, path] of [
    ['orders', '/orders'],
    ['items', '/items'],
    ['users', '/api/users'],
  ] as const) {
    const isListed = resources.some((one) => one.name === name);
    assert.equal(Object.keys(paths).includes(path), isListed, `${path} in OpenAPI`);
    assert.equal((await server.get(path)).status, isListed ? 200 : 404, path);
  }
  return Object.fromEntries(resources.map(({ name, rows }) => [name, rows]));
}

const ROWS = [{ _id: 1, status: 'new' }];

/** Starts a server, and stops it before the next one uses its store. */
async function servedOnce(t: TestContext, environment: Record<string, string>) {
  const server = await serverOn(t, environment);
  const names = await served(server);
  await server.close();
  return names;
}

test('the first start of an embedded store loads the catalogue, and a later one of an empty store does not', async (t) => {
  const fresh = await temporaryFolder(t);
  const empty = await temporaryFolder(t);
  const settings = { MONGODB_URI: '', SAMPLE: 'auto' };
  const whole = { items: SAMPLE_ROWS, users: undefined };
  assert.deepEqual(await servedOnce(t, { ...settings, DATA_DIR: fresh }), whole);
  assert.deepEqual(await servedOnce(t, { ...settings, DATA_DIR: fresh }), whole);
  assert.deepEqual(await servedOnce(t, { ...settings, DATA_DIR: empty, SAMPLE: 'off' }), {
    ...whole,
    items: 0,
  });
  assert.deepEqual(await servedOnce(t, { ...settings, DATA_DIR: empty }), { ...whole, items: 0 });
  assert.deepEqual(await servedOnce(t, { ...settings, DATA_DIR: empty, SAMPLE: 'on' }), whole);
});

test('a load of the catalogue that was interrupted is completed by a later start', async (t) => {
  const DATA_DIR = await temporaryFolder(t);
  const begun = await serverOn(t, { MONGODB_URI: '', DATA_DIR, SAMPLE: 'on' });
  await begun.store.items.remove([BSON.serialize({ _id: 'd53940' }) as Bookmark]);
  await begun.close();
  const settings = { MONGODB_URI: '', DATA_DIR, SAMPLE: 'auto' };
  assert.deepEqual(await servedOnce(t, settings), { items: SAMPLE_ROWS, users: undefined });
});

test('beside a resource of the embedded store there are items only where some are stored or asked for', async (t) => {
  const imported = await withOrders(t, 'sqlite', ROWS);
  const settings = { ...imported, SAMPLE: 'auto' };
  const both = { orders: 1, items: 0, users: undefined };
  assert.deepEqual(await servedOnce(t, settings), { orders: 1, users: undefined });
  const items = await resourcesFile(t, { resources: { items: {} } });
  assert.deepEqual(await servedOnce(t, { ...settings, RESOURCES_FILE: items }), both);
  const orders = await resourcesFile(t, { resources: { orders: {} } });
  const server = await serverOn(t, { ...settings, RESOURCES_FILE: items });
  await server.insert([{ _id: 'a', category: 'x', price: 1 }]);
  await server.close();
  assert.deepEqual(await servedOnce(t, settings), { ...both, items: 1 });
  assert.deepEqual(await servedOnce(t, { ...settings, RESOURCES_FILE: orders }), {
    orders: 1,
    users: undefined,
  });
});

test('items that are imported beside a resource are served by a server that runs, and stay', async (t) => {
  const settings = await withOrders(t, 'sqlite', ROWS);
  const server = await serverOn(t, { ...settings, SAMPLE: 'auto' });
  assert.deepEqual(await served(server), { orders: 1, users: undefined });
  const loaded = await sluice(['import', '--sample'], { ...settings });
  assert.equal(loaded.code, 0, loaded.said);
  assert.equal(await server.reload(), true);
  assert.deepEqual(await served(server), { orders: 1, items: SAMPLE_ROWS, users: undefined });
  await server.store.items.clear(AbortSignal.timeout(60_000));
  assert.equal(await server.reload(), true);
  assert.deepEqual(await served(server), { orders: 1, items: 0, users: undefined });
});

test('the empty items of a file of before are not served beside a resource, and stay once they are', async (t) => {
  const { DATA_DIR = '' } = await withOrders(t, 'sqlite', ROWS);
  const settings = { MONGODB_URI: '', DATA_DIR, SAMPLE: 'auto' };
  makeOldItems(DATA_DIR);
  assert.deepEqual(await servedOnce(t, settings), { orders: 1, users: undefined });
  const loaded = await sluice(['import', '--generate', '3'], settings);
  assert.equal(loaded.code, 0, loaded.said);
  const server = await serverOn(t, settings);
  assert.deepEqual(await served(server), { orders: 1, items: 3, users: undefined });
  await server.store.items.clear(AbortSignal.timeout(60_000));
  assert.equal(await server.reload(), true);
  assert.deepEqual(await served(server), { orders: 1, items: 0, users: undefined });
});

test('a new embedded store for declared resources has no catalogue', async (t) => {
  const items = await resourcesFile(t, { resources: { items: {} } });
  const settings = { MONGODB_URI: '', SAMPLE: 'auto', RESOURCES_FILE: items };
  assert.deepEqual(await servedOnce(t, settings), { items: 0, users: undefined });
});

test('beside collections of MongoDB that others own there are neither items nor users, unless a setting asks', async (t) => {
  const exposed = await withOrders(t, 'mongodb', ROWS);
  if (exposed === null) return;
  assert.deepEqual(await servedOnce(t, { ...exposed, SAMPLE: 'auto' }), { orders: 1 });
  const withUsers = { orders: 1, users: undefined };
  assert.deepEqual(await servedOnce(t, { ...exposed, MONGODB_PREFIX: 'sluice_' }), withUsers);
  const items = await resourcesFile(t, { resources: { items: {} } });
  assert.deepEqual(await servedOnce(t, { ...exposed, RESOURCES_FILE: items }), { ...withUsers, items: 0 });
  const on = { ...withUsers, items: SAMPLE_ROWS };
  assert.deepEqual(await servedOnce(t, { ...exposed, SAMPLE: 'on' }), on);
});

test('a database of MongoDB for which nothing is declared has items and users', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  assert.deepEqual(await servedOnce(t, { MONGODB_URI: uri }), { items: 0, users: undefined });
});

test('items that cannot be served stop the start with the reason, which is no fault of the settings', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  await testClient(t, uri).db().createCollection('items', { viewOn: 'others', pipeline: [] });
  await assert.rejects(
    serverOn(t, { MONGODB_URI: uri }),
    (error) =>
      error instanceof Error && error.name === 'MongoRefusal' && error.message.includes('it is a view'),
  );
});

test('a key names one thing: a collection users is refused where keys open the users of /api/users', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  await testClient(t, uri).db().collection('users').insertOne({ ofThe: 'collection' });
  const file = await resourcesFile(t, { resources: { people: { collection: 'users' } } });
  const keys = join(await temporaryFolder(t), 'keys.json');
  writeFileSync(keys, keysText([{ name: 'all', resources: ['people', 'users'] }]));
  const place = { MONGODB_URI: uri, MONGODB_PREFIX: 'own_' };
  const open = await serverOn(t, { ...place, EXPOSE: 'users' }); // without keys there is nothing to mistake
  for (const path of ['/users', '/api/users']) assert.equal((await open.get(path)).status, 200, path);
  const fault = 'the name users means the users of /api/users in keys; RESOURCES_FILE can give';
  await assert.rejects(
    serverOn(t, { ...place, EXPOSE: 'users', API_KEYS_FILE: keys }),
    (error) => error instanceof Faults && error.faults.some((one) => one.includes(fault)),
  );
  for (const declared of [
    { RESOURCES_FILE: file, EXPOSE: '' },
    { RESOURCES_FILE: file, EXPOSE: 'u*' },
  ]) {
    const server = await serverOn(t, { ...place, ...declared, API_KEYS_FILE: keys });
    const get = async (path: string) => {
      const response = await fetch(server.url + path, { headers: bearer('all') });
      return [response.status, (await response.text()).includes('"ofThe"')];
    };
    assert.deepEqual(await get('/people'), [200, true]);
    assert.deepEqual(await get('/users'), [404, false]);
    assert.deepEqual(await get('/api/users'), [200, false]);
  }
});
