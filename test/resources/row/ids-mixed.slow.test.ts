import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Binary, Double, Int32, Long, ObjectId, UUID, type Document } from '../../../src/store/bson.ts';
import { serverOn, testServer, type StoreName, type TestServer } from '../../support/process/server.ts';
import { testClient } from '../../support/store/mongo/mongo.ts';
import { testMongo } from '../../support/store/mongo/mongod.ts';

const HEX = '0123456789abcdef01234567';
const OBJECT_IDS = ['0', '7', 'f'].map((digit) => new ObjectId(digit.repeat(24)));
const UUIDS = ['0', '7', 'f'].map((digit) => new UUID(digit.repeat(32)));
const TEXTS = ['a', 'b', 'c'];

/** Ids of one type with a few of other types. Each must be found by the text that its JSON shows. */
const COLLECTIONS: readonly (readonly [name: string, ids: readonly unknown[]])[] = [
  ['ObjectIds and a stray text', [...OBJECT_IDS, 'stray']],
  ['ObjectIds and a stray number', [...OBJECT_IDS, new Int32(7)]],
  ['UUIDs, a stray text and a stray number', [...UUIDS, 'stray', Long.fromString('9007199254740993')]],
  ['texts and a stray number', [...TEXTS, new Double(5)]],
  ['texts and a stray ObjectId', [...TEXTS, new ObjectId(HEX)]],
];

/** Ids that only MongoDB accepts. */
const ON_MONGODB: typeof COLLECTIONS = [
  ['ObjectIds and a stray null', [...OBJECT_IDS, null]],
  ['UUIDs and a stray null', [...UUIDS, null]],
  ['texts and a stray null', [...TEXTS, null]],
  ['ObjectIds, a stray date and a stray document', [...OBJECT_IDS, new Date(0), { a: 1 }]],
];

async function serverWith(t: Parameters<typeof testServer>[0], store: StoreName, ids: readonly unknown[]) {
  const documents = ids.map((_id, n): Document => ({ _id, category: 'a', price: n }));
  if (store === 'sqlite') {
    const server = await testServer(t, store, 'node');
    await server.insert(documents);
    return server;
  }
  const uri = await testMongo(t);
  if (uri === null) return null;
  const server = await serverOn(t, { HTTP_ENGINE: 'node', MONGODB_URI: uri });
  // By a command, because the driver replaces a null _id.
  await server.insert([]);
  await testClient(t, uri).db().command({ insert: 'items', documents });
  return server;
}

function textOf(id: unknown): string | null {
  if (id instanceof Binary) return new UUID(id.buffer).toString();
  const isReadable =
    typeof id === 'string' || [ObjectId, Int32, Long, Double].some((type) => id instanceof type);
  return isReadable ? String(id) : null;
}

async function check(server: TestServer, ids: readonly unknown[]): Promise<void> {
  const all = await (await server.get('/items/stream')).text();
  const lines = all.split('\n').slice(0, -1);
  assert.equal(lines.length, ids.length);
  for (const id of ids.map(textOf)) {
    if (id === null) continue;
    const answer = await server.get(`/items/${id}`);
    assert.equal(answer.status, 200, id);
    const row = await answer.text();
    const at = lines.indexOf(row);
    assert.ok(at >= 0, row);
    const again = await server.get(`/items/${id}`, { 'if-none-match': answer.headers.get('etag') ?? '' });
    assert.equal(again.status, 304);
    const rest = await (await server.get(`/items/stream?after=${id}`)).text();
    assert.deepEqual(rest.split('\n').slice(0, -1), lines.slice(at + 1), `after ${id}`);
  }
  assert.equal((await server.get(`/items/${'d'.repeat(24)}`)).status, 404);
}

for (const store of ['sqlite', 'mongodb'] satisfies StoreName[])
  describe(`ids of several types on ${store}`, () => {
    for (const [name, ids] of [...COLLECTIONS, ...(store === 'mongodb' ? ON_MONGODB : [])])
      test(`${name}: each row is found by the text of its id, and reading continues from it`, async (t) => {
        const server = await serverWith(t, store, ids);
        if (server) await check(server, ids);
      });

    test("a text that two ids share means the id of the first row's type", async (t) => {
      const server = await serverWith(t, store, [HEX, new ObjectId(HEX)]);
      if (!server) return;
      const row = (await (await server.get(`/items/${HEX}`)).json()) as { price: number };
      assert.equal(row.price, 0);
    });
  });

test('ID_TYPE restricts ids in URLs to its type', async (t) => {
  const server = await testServer(t, 'sqlite', 'node', { ID_TYPE: 'objectid' });
  await server.insert([HEX, new ObjectId(HEX), 'a'].map((_id, price) => ({ _id, category: 'a', price })));
  const row = (await (await server.get(`/items/${HEX}`)).json()) as { price: number };
  assert.equal(row.price, 1);
  assert.equal((await server.get('/items/a')).status, 404);
});

test('a long id that is not found is quoted by its beginning', async (t) => {
  const server = await testServer(t, 'sqlite', 'node');
  for (const path of ['/items/', '/exports/', '/api/users/']) {
    const { detail } = (await (await server.get(path + 'x'.repeat(7_000))).json()) as { detail: string };
    assert.ok(detail.length < 300, `${path}: ${detail.length}`);
  }
});

test('an empty Accept counts as none, and an empty Accept-Encoding allows no coding', async (t) => {
  const server = await testServer(t, 'sqlite', 'node');
  await server.insert(Array.from({ length: 100 }, (_, n) => ({ _id: n, category: 'a', price: n })));
  for (const path of ['/items', '/items/stream', '/items/1', '/problems/not-found']) {
    const answer = await server.get(path, { accept: '', 'accept-encoding': '' });
    assert.equal(answer.status, 200, path);
    assert.equal(answer.headers.get('content-encoding'), null);
    await answer.text();
  }
});
