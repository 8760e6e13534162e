import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { pino } from 'pino';
import { mongodWithUsers, openStore, testClient } from '../../support/store/mongo/mongo.ts';
import { ownMongod, testMongo } from '../../support/store/mongo/mongod.ts';
import { serverOn, type TestServer } from '../../support/process/server.ts';
import { PATH, usersAt } from '../../support/users/users.ts';
import { testsWith } from '../../support/tests-with.ts';
import { NEVER, PLENTY, readRows } from '../../support/store/reading.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { feedOf, isProblem, until } from '../../support/store/changes.ts';

const TWO = { rows: 2, bytes: PLENTY };

/** The server on a database, and its log. */
async function logging(t: TestContext, settings: Record<string, string>) {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  return { server: await serverOn(t, settings, { log }), lines };
}

async function problemOf(server: TestServer, path: string) {
  const response = await server.get(path);
  const { code, detail } = (await response.json()) as { code?: string; detail?: string };
  return { status: response.status, code, detail: detail ?? '', retry: response.headers.get('retry-after') };
}

const putUser = ({ url }: TestServer) =>
  usersAt(url).send('PUT', `${PATH}/u1`, { body: { name: 'a', email: 'a@b' } });

test('a user whose roles are revoked gets 503 until they are granted again, without a restart', async (t) => {
  const mongod = await mongodWithUsers(t);
  if (!mongod) return;
  const { as, root, add } = mongod;
  const admin = root.db('admin');
  const role = { role: 'readWrite', db: 'shop' };
  await add('clerk', role);
  const { server, lines } = await logging(t, { MONGODB_URI: as('clerk') });
  await server.insert([{ _id: 'a', category: 'a', price: 1 }]);
  const paths = [
    '/items',
    '/items/a',
    '/items/stream',
    '/items?count=exact',
    '/items?count=estimated&category=a',
    '/items/partitions?n=2',
    '/items?sort=price_asc',
    '/api/users',
    '/api/users/u1',
  ];
  assert.equal((await server.get('/items')).status, 200);
  await admin.command({ revokeRolesFromUser: 'clerk', roles: [role] });
  for (const path of paths) {
    const { status, code, detail } = await problemOf(server, path);
    assert.deepEqual({ status, code }, { status: 503, code: 'store-unfit' }, `${path}: ${detail}`);
    assert.doesNotMatch(detail, /lsid|not authorized on/, 'the answer shows no internals');
  }
  const readiness = await server.get('/readyz');
  assert.equal(readiness.status, 503);
  assert.match(await readiness.text(), /does not permit this server to read 'items'/);
  await admin.command({ grantRolesToUser: 'clerk', roles: [role] });
  for (const path of ['/items', '/readyz', '/api/users'])
    await until(`${path} is back`, async () => (await server.get(path)).status === 200);
  assert.match(lines.join(''), /MongoDB refuses this user/);
});

const it = testsWith(testMongo);

it('a foreign collection named users is reported in the log, and not as an unavailable store', async (uri, t) => {
  const users = testClient(t, uri).db().collection('users');
  await users.insertOne({ login: 'x', passwordHash: 'y' });
  const { server, lines } = await logging(t, { MONGODB_URI: uri });
  const report = /"msg":"The collection '[^']+' is not served: it has documents that are not users /;
  const reports = () => lines.filter((line) => report.test(line)).length;
  for (let n = 0; n < 3; n++) {
    const { status, code, detail } = await problemOf(server, '/api/users');
    assert.deepEqual({ status, code }, { status: 503, code: 'store-unfit' });
    assert.match(detail, /^These rows cannot be served now/);
    assert.doesNotMatch(detail, /did not answer|in 5 s/);
  }
  assert.equal((await server.get('/items')).status, 200);
  assert.equal(reports(), 1);
  await users.deleteMany({});
  assert.equal((await putUser(server)).status, 201, 'repaired without a restart');
  assert.match(lines.join(''), /'users' has no such validator/);
});

it('users that are dropped while they are served are not created again by a write', async (uri, t) => {
  const db = testClient(t, uri).db();
  const { server } = await logging(t, { MONGODB_URI: uri });
  assert.equal((await putUser(server)).status, 201);
  await db.dropCollection('users');
  for (let n = 0; n < 3; n++) {
    assert.equal((await putUser(server)).status, 503);
    assert.equal((await problemOf(server, '/api/users/u1')).status, 503);
  }
  assert.equal((await db.listCollections({ name: 'users' }).toArray()).length, 0);
});

it('a category that is an array does not prevent a start, and the log shows the commands to run', async (uri, t) => {
  const items = testClient(t, uri).db().collection('items');
  await items.insertOne({ _id: 1 as never, category: ['a', 'b'], price: 1 });
  const { warnings } = await openStore(t, uri);
  await items.deleteOne({ _id: 1 as never });
  const lines = [...warnings.join().matchAll(/(\w+)Index\(("[^"]*"|\{[^}]*\})\)/g)];
  assert.equal(lines.length, 4);
  for (const [, what, argument = ''] of lines)
    if (what === 'drop') await items.dropIndex(JSON.parse(argument) as string);
    else await items.createIndex(JSON.parse(argument) as Record<string, 1>);
  const later = await openStore(t, uri);
  assert.deepEqual(
    later.warnings.filter((warning) => warning.includes('Index(')),
    [],
  );
});

it('a replica set with another name than in the URI is reported', async (uri, t) => {
  const { host } = new URL(uri);
  const wrong = `mongodb://${host}/shop?replicaSet=wrong&serverSelectionTimeoutMS=500`;
  const { warnings } = await openStore(t, wrong);
  assert.match(warnings.join(), /No server of the MongoDB URI is in the replica set 'wrong'/);
});

test('a single mongod is served with one warning and without a change feed, a replica set without a warning', async (t) => {
  const set = await ownMongod(t, { replicated: false });
  if (!set) return;
  const { store, warnings } = await openStore(t, set.uri);
  assert.equal(warnings.filter((warning) => warning.includes('not a replica set')).length, 1);
  const feed = feedOf(store.items);
  const unsupported = isProblem('changes-unsupported');
  await assert.rejects(feed.now(NEVER), unsupported);
  await assert.rejects(feed.read(feed.at(1n), { most: 10, waitMs: 1_000 }, undefined, NEVER), unsupported);
  const uri = await testMongo(t);
  if (uri !== null) assert.deepEqual((await openStore(t, uri)).warnings, []);
});

test('a MongoDB user with read permission only can read items and users, and an error names what is missing and may not be created', async (t) => {
  const mongod = await mongodWithUsers(t);
  if (!mongod) return;
  const { as, root } = mongod;
  await mongod.add('reader', { role: 'read', db: 'shop' });
  await assert.rejects(
    openStore(t, as('reader')),
    /'items' is missing, and the MongoDB user has no permission to create it/,
  );
  await root.db().createCollection('items');
  const without = await openStore(t, as('reader'));
  assert.match(
    without.warnings.join(),
    /lacks the index \{"price":1,"_id":1\}, and MongoDB did not create it/,
  );
  await assert.rejects(openStore(t, as('stranger')), /Authentication failed/);
  const { store } = await openStore(t, as('root'));
  const row = BSON.serialize({ _id: 'a', category: 'a', price: 1 });
  await store.items.insert([row], 'fail');
  const owner = await serverOn(t, { MONGODB_URI: as('root') });
  assert.equal((await putUser(owner)).status, 201);
  const reading = await openStore(t, as('reader'));
  const read = await readRows(reading.store.items, { sort: 'price', direction: -1 }, {}, TWO);
  assert.deepEqual(read.rows, [Buffer.from(row)]);
  await assert.rejects(reading.store.items.insert([row], 'skip'), { code: 13 });
  const { server, lines } = await logging(t, { MONGODB_URI: as('reader') });
  assert.equal((await server.get('/api/users/u1')).status, 200);
  const refused = await putUser(server);
  assert.equal(refused.status, 503);
  assert.match(refused.text, /permits this server to read users, but not to change them/);
  assert.doesNotMatch(lines.join(''), /'users' is missing/);
  await root.db().dropCollection('users');
  const less = await logging(t, { MONGODB_URI: as('reader') });
  assert.equal((await less.server.get('/api/users')).status, 200);
  assert.equal((await putUser(less.server)).status, 503);
  assert.match(
    less.lines.join(''),
    /'users' is missing, and the MongoDB user has no permission to create it/,
  );
  assert.equal((await less.server.get('/items')).status, 200);
});
