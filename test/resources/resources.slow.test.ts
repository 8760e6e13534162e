import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { Decimal128, ObjectId, type Document } from 'mongodb';
import { readConfig } from '../../src/settings/config.ts';
import { Faults } from '../../src/base/errors.ts';
import type { Route } from '../../src/http/route.ts';
import type { ServerOptions } from '../../src/server/main.ts';
import { RESOURCES_FILE_SCHEMA, TAKEN } from '../../src/resources/declarations.ts';
import { onMongo } from '../support/process/each-server.ts';
import { jsonOf, linesOf, pagesOf, problemOf, textOf, type Page } from '../support/answers.ts';
import { temporaryFolder } from '../support/directory.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { resourcesFile, resourceServer } from '../support/resources/resources.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';

const STATUSES = ['new', 'paid', 'sent'];
const COUNT = 300;

/** Orders with ids of MongoDB, dates, nested fields, and values of several types. */
function orders(): Document[] {
  return Array.from({ length: COUNT }, (_, n) => ({
    _id: new ObjectId(n.toString(16).padStart(24, '0')),
    status: STATUSES[n % 3],
    createdAt: new Date(Date.UTC(2026, 0, 1) + (n % 50) * 86_400_000),
    customer: { country: n % 2 === 0 ? 'NL' : 'DE', name: `c${n}` },
    total: n % 7 === 0 ? Decimal128.fromString(`${n}.5`) : n,
    ref: n < 10 ? 42 : n < 20 ? '42' : `r${n}`,
    ...(n % 10 === 0 ? {} : { note: `n${n}` }),
  }));
}

async function ordersServer(
  t: TestContext,
  environment: Record<string, string> = {},
): Promise<{ readonly server: TestServer; readonly rows: Document[]; readonly uri: string } | null> {
  const uri = await testMongo(t);
  if (uri === null) return null;
  const rows = orders();
  const collection = testClient(t, uri).db().collection('orders');
  await collection.insertMany(rows);
  await collection.createIndex({ status: 1, createdAt: -1, _id: -1 });
  await collection.createIndex({ 'customer.country': 1, _id: 1 });
  await collection.createIndex({ total: 1, _id: 1 });
  await collection.createIndex({ ref: 1, _id: 1 });
  await collection.createIndex({ note: 1, _id: 1 });
  await collection.createIndex({ createdAt: 1 });
  const server = await serverOn(t, { MONGODB_URI: uri, EXPOSE: 'orders', ...environment });
  return { server, rows, uri };
}

async function page(server: TestServer, path: string): Promise<Page<Document>> {
  return (await jsonOf(server.get(path))) as Page<Document>;
}

const refusal = (server: TestServer, path: string) => problemOf(server.get(path));

const idOf = ({ _id }: Document) => String(_id);

onMongo(ordersServer, (test) => {
  test('a stream goes on after a row that names itself, unless its sort value shows as null', async ({
    server,
  }) => {
    const all = await linesOf(server.get('/orders/stream?status=new&sort=createdAt_desc'));
    const { id, createdAt } = JSON.parse(all[40] ?? '') as { id: string; createdAt: string };
    for (const after of [`${createdAt},${id}`, JSON.stringify([createdAt, id])]) {
      const path = `/orders/stream?status=new&sort=createdAt_desc&after=${encodeURIComponent(after)}`;
      assert.deepEqual(await linesOf(server.get(path)), all.slice(41));
    }
    const refused = await refusal(server, `/orders/stream?sort=note_asc&after=null,${id}`);
    assert.equal(refused.code, 'invalid-parameter');
  });

  test('partitions and parts take equalities, and say so of every range and of another order', async ({
    server,
    rows,
  }) => {
    const lowest = `id.gte=${idOf(rows[3] ?? {})}`;
    const { partitions } = (await jsonOf(server.get('/orders/partitions?n=2&customer.country=DE'))) as {
      partitions: { url: string }[];
    };
    const part = new URL(partitions[0]?.url ?? '', server.url).searchParams.get('part') ?? '';
    for (const asked of [lowest, 'total.gte=5', 'total.lt=5&sort=total_asc'])
      for (const path of [`/orders/partitions?n=2`, `/orders/stream?part=${part}`]) {
        if (path.includes('partitions') && asked.includes('sort=')) continue; // it has no parameter sort
        const { code, detail } = await refusal(server, `${path}&${asked}`);
        assert.equal(code, 'conflicting-parameters', path + asked);
        const field = asked.startsWith('id') ? 'id' : 'total';
        assert.match(
          detail,
          new RegExp(`takes? equalities but no range\\. Leave out the bounds of ${field}, `),
        );
      }
    const { code, detail } = await refusal(server, `/orders/stream?part=${part}&sort=total_asc`);
    assert.equal(code, 'conflicting-parameters');
    assert.match(detail, /requires sort=id_asc/);
    await textOf(server.get(`/orders/stream?part=${part}&customer.country=DE`));
  });

  test('a walk is never read otherwise when rows of another type come', async ({ server, uri }, t) => {
    const collection = testClient(t, uri).db().collection('orders');
    await collection.updateMany({ ref: { $type: 'string' } }, { $set: { ref: 7 } });
    const first = await page(server, '/orders?ref=42&limit=4');
    await collection.updateMany({ ref: 7 }, { $set: { ref: '42' } });
    const second = await page(server, `/orders?ref=42&limit=10&cursor=${first.page.nextCursor ?? ''}`);
    assert.deepEqual(
      [...first.data, ...second.data].map(({ ref }) => ref as unknown),
      Array(10).fill(42),
    );
    const other = await refusal(server, `/orders?ref=43&cursor=${first.page.nextCursor ?? ''}`);
    assert.equal(other.code, 'cursor-mismatch');
  });

  test('the distinct values of a field are listed with their numbers, and by cursor', async ({ server }) => {
    /** By pages, because the server ends each after a second. */
    const valuesOf = async (query: string) => {
      const found: Document[] = [];
      for await (const { data } of pagesOf<Document>(server, `/orders/values?${query}`)) found.push(...data);
      return found;
    };
    assert.deepEqual(await valuesOf('field=status&count=exact&limit=1'), [
      { value: 'new', count: 100 },
      { value: 'paid', count: 100 },
      { value: 'sent', count: 100 },
    ]);
    const totals = (await valuesOf('field=total&limit=70')).map(({ value }) => value as unknown);
    assert.equal(totals.length, COUNT);
    assert.deepEqual(totals.slice(0, 3), [0.5, 1, 2]);
    assert.equal((await valuesOf('field=createdAt&status=paid&limit=1000')).length, 50);
    assert.equal((await refusal(server, '/orders/values?field=customer.name')).code, 'not-indexed');
  });

  test('GET /resources says which index only lacks the key', async ({ server }) => {
    const { resources } = (await jsonOf(server.get('/resources'))) as { resources: Document[] };
    assert.match(JSON.stringify(resources[0]?.missing), /createdAt_1.*\\"createdAt\\":1,\\"_id\\":1/);
  });

  test('names that a route has, names given twice and missing collections stop the start, each with its place', async ({
    uri,
  }, t) => {
    const faultsOf = async (settings: Record<string, string>): Promise<string> => {
      const error: unknown = await serverOn(t, { MONGODB_URI: uri, ...settings }).then(
        () => assert.fail('the server started'),
        (reason: unknown) => reason,
      );
      assert.ok(error instanceof Faults, String(error));
      return error.message;
    };
    assert.match(await faultsOf({ EXPOSE: 'orders,nowhere' }), /nowhere.*does not exist/);
    assert.match(await faultsOf({ EXPOSE: 'orders, orders' }), /orders twice/);
    assert.match(await faultsOf({ EXPOSE: 'users' }), /users.*own records/);
    const file = await resourcesFile(t, {
      resources: { docs: { collection: 'orders' }, a: { nope: 1, fields: { x: 'int' } } },
    });
    const faults = await faultsOf({ RESOURCES_FILE: file });
    assert.match(faults, /\/resources\/a\/nope: unknown field/);
    assert.match(faults, /\/resources\/a\/fields\/x: expected one of string, number/);
    const taken = await resourcesFile(t, { resources: { docs: { collection: 'orders' } } });
    assert.match(await faultsOf({ RESOURCES_FILE: taken }), /\/resources\/docs: the name docs is taken/);
    const both = await resourcesFile(t, { resources: { orders: { hide: ['note'], show: ['ref'] } } });
    assert.match(await faultsOf({ RESOURCES_FILE: both }), /\/resources\/orders.*hide and show exclude/);
    const key = await resourcesFile(t, { resources: { orders: { hide: ['_id'] } } });
    assert.match(
      await faultsOf({ RESOURCES_FILE: key }),
      /\/resources\/orders.*the key, which cannot be hidden/,
    );
    assert.throws(() => readConfig({ EXPOSE: 'orders' }), /EXPOSE needs MONGODB_URI/);
  });
});

test('a file declares resources of an embedded store that keeps them from an earlier start', async (t) => {
  const DATA_DIR = await temporaryFolder(t);
  const orders = { indexes: [['status']], hide: ['card'] };
  const settings = { DATA_DIR, RESOURCES_FILE: await resourcesFile(t, { resources: { orders } }) };
  for (const start of ['first', 'second']) {
    const server = await serverOn(t, settings);
    assert.deepEqual((await page(server, '/orders?status=new')).data, [], start);
    assert.match((await refusal(server, '/orders?card=1')).detail, /card/, start);
    await server.close();
  }
  const renamed = await resourcesFile(t, { resources: { sales: { collection: 'orders' } } });
  const server = await serverOn(t, { DATA_DIR, RESOURCES_FILE: renamed });
  assert.deepEqual((await page(server, '/sales?status=new')).data, []);
  assert.equal((await server.get('/orders')).status, 404);
  await server.close();
  const kept = await serverOn(t, { DATA_DIR });
  assert.deepEqual((await page(kept, '/orders?status=new')).data, []);
});

test('fields that `show` does not name are refused in every form, hidden ones as missing ones', async (t) => {
  const show = ['status', 'customer.name', 'lines'];
  const RESOURCES_FILE = await resourcesFile(t, { resources: { sales: { show } } });
  const rows = [
    { _id: 1, status: 'new', customer: { name: 'c', country: 'NL' }, note: 'x', lines: [{ sku: 1 }] },
  ];
  const declared = { name: 'sales', rows, indexes: [['note'], ['customer.country']] };
  const server = await resourceServer(t, 'sqlite', declared, { RESOURCES_FILE, EXPOSE: '' });
  const shown = '"id":1,"status":"new","customer":{"name":"c"},"lines":[{"sku":1}]';
  for (const path of ['/sales', '/sales/stream', '/sales/stream?format=json', '/sales/1'])
    assert.ok((await textOf(server.get(path))).includes(`{${shown}}`), path);
  for (const path of ['/sales', '/sales/stream', '/sales/stream?format=csv', '/sales/partitions'])
    for (const field of ['note', 'nope', 'customer.country', 'customer.names', 'statu']) {
      const asked = `${path}${path.includes('?') ? '&' : '?'}fields=status,${field}`;
      const { code, parameter, detail } = await refusal(server, asked);
      assert.deepEqual([code, parameter], ['invalid-parameter', 'fields'], path);
      assert.equal(
        detail,
        `fields: sales has no field "${field}"; its fields are id, status, customer.name, lines.`,
      );
    }
  const { data } = await page(server, '/sales?fields=customer,lines.sku,status,id,_id');
  assert.deepEqual(data, [{ id: 1, status: 'new', customer: { name: 'c' }, lines: [{ sku: 1 }] }]);
  for (const query of ['note=n1', 'sort=note_asc', 'customer.country=NL', 'customer.country.gte=A']) {
    const [hidden, unknown] = await Promise.all(
      [query, query.replace('note', 'nope').replace('country', 'qountry')].map((asked) =>
        refusal(server, `/sales?${asked}`),
      ),
    );
    assert.equal(hidden?.code, 'not-indexed', query);
    assert.equal(
      hidden.detail.replaceAll('note', 'nope').replaceAll('country', 'qountry'),
      unknown?.detail,
      query,
    );
  }
});

onMongo(ordersServer, (test) => {
  test('a file names collections, declares kinds and makes indexes that are missing', async ({
    uri,
    rows,
  }, t) => {
    const file = await resourcesFile(t, {
      $schema: './resources.schema.json',
      resources: {
        sales: { collection: 'orders', fields: { ref: 'string' }, indexes: [['customer.name']] },
      },
    });
    const server = await serverOn(t, { MONGODB_URI: uri, RESOURCES_FILE: file });
    const found = await page(server, '/sales?ref=42&limit=100');
    assert.equal(found.data.length, 10, 'the declared kind needs no prefix');
    const named = await page(server, '/sales?customer.name=c7');
    assert.deepEqual(
      named.data.map(({ id }) => id as string),
      [idOf(rows[7] ?? {})],
    );
  });

  test('a collection of another database has its own name', async (opened, t) => {
    const database = new URL(opened.uri).pathname.slice(1);
    const elsewhere = opened.uri.replace(database, `${database}_own`);
    const server = await serverOn(t, {
      MONGODB_URI: elsewhere,
      EXPOSE: `${database}.orders`,
      MONGODB_PREFIX: 'own_',
    });
    assert.equal((await page(server, '/orders?limit=3')).data.length, 3);
    const refused = await refusal(server, '/orders?sort=status_asc');
    assert.ok(
      refused.detail.includes(`db.getSiblingDB("${database}").getCollection("orders")`),
      refused.detail,
    );
    assert.deepEqual(await page(server, '/api/users').then(({ data }) => data), []);
    assert.equal((await server.get('/items')).status, 404);
    assert.equal((await server.get('/exports')).status, 200);
    const client = testClient(t, opened.uri);
    const created = await client.db(`${database}_own`).listCollections().toArray();
    assert.deepEqual(
      created.map(({ name }) => name),
      [],
      'nothing is created in a database that was not asked for',
    );
    const user = { name: 'Ada', email: 'ada@example.org' };
    const made = await fetch(`${server.url}/api/users`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(user),
    });
    assert.equal(made.status, 201, 'the first write creates the collection of users');
    assert.equal((await page(server, '/api/users')).data.length, 1);
    await client.db(`${database}_own`).dropDatabase();
  });

  test('a file that declares items has the server make their collection and indexes, and nothing else does', async (opened, t) => {
    const db = testClient(t, opened.uri).db();
    const names = async () => (await db.listCollections().toArray()).map(({ name }) => name);
    const fileOf = (resources: Record<string, unknown>) => resourcesFile(t, { resources });
    const ofOrders = { MONGODB_URI: opened.uri, RESOURCES_FILE: await fileOf({ orders: {} }) };
    const without = await serverOn(t, ofOrders);
    assert.equal((await without.get('/items')).status, 404);
    assert.ok(!(await names()).includes('items'));
    const server = await serverOn(t, {
      MONGODB_URI: opened.uri,
      RESOURCES_FILE: await fileOf({ items: {}, orders: { hide: ['customer'] } }),
    });
    assert.equal((await server.get('/items?sort=price_asc')).status, 200);
    assert.equal((await server.get('/orders?limit=1')).status, 200);
    const made = await db.collection('items').indexes();
    assert.deepEqual(made.map(({ name }) => String(name)).sort(), [
      '_id_',
      'category_1__id_1',
      'category_1_price_1__id_1',
      'price_1__id_1',
    ]);
    const refused = await fileOf({ items: { collection: 'orders', hide: ['a'] } });
    assert.throws(() => readConfig({ MONGODB_URI: opened.uri, RESOURCES_FILE: refused }), {
      message:
        /\/resources\/items\/collection: items has no members.*\n.*\/resources\/items\/hide: items has no members/,
    });
  });
});

test('a collection named items is a resource as any other, unless a setting asks for the items of sluice', async (t) => {
  const MONGODB_URI = await testMongo(t);
  if (MONGODB_URI === null) return;
  const items = testClient(t, MONGODB_URI).db().collection('items');
  await items.insertMany([7, 8].map((size) => ({ category: 'x', price: size, size })));
  await items.createIndex({ size: 1, _id: 1 });
  for (const EXPOSE of ['items', '*']) {
    const server = await serverOn(t, { MONGODB_URI, EXPOSE });
    assert.equal((await page(server, '/items?size=7')).data.length, 1, EXPOSE);
  }
  const RESOURCES_FILE = await resourcesFile(t, { resources: { items: {} } });
  const server = await serverOn(t, { MONGODB_URI, EXPOSE: '*', RESOURCES_FILE });
  assert.equal((await page(server, '/items?min_price=8&sort=price_asc')).data.length, 1);
  await assert.rejects(serverOn(t, { MONGODB_URI, EXPOSE: 'items', RESOURCES_FILE }), (error) => {
    assert.ok(error instanceof Faults);
    assert.match(String(error.faults), /EXPOSE: items: another resource has the name items/);
    return true;
  });
});

test('the names that no resource can have are those of the routes', async (t) => {
  let served: readonly Route[] = [];
  const tap: ServerOptions['tap'] = (serve, routes) => {
    served = routes();
    return serve;
  };
  await serverOn(t, {}, { tap });
  const segments = new Set(served.map(({ path }) => path.split('/')[1] ?? ''));
  for (const other of ['', 'items']) segments.delete(other);
  assert.deepEqual([...segments].sort(), [...TAKEN].sort());
});

test('the published schema of the file is the one that the server checks', () => {
  const published = JSON.parse(readFileSync('docs/resources.schema.json', 'utf8')) as Record<string, unknown>;
  const { $schema, ...schema } = published;
  assert.match(String($schema), /json-schema\.org/);
  assert.deepEqual(schema, JSON.parse(JSON.stringify(RESOURCES_FILE_SCHEMA)));
});
