import assert from 'node:assert/strict';
import { idsIn, jsonOf, linesOf, problemOf } from '../support/answers.ts';
import { catalogue, expectedIds } from '../support/resources/catalogue.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { impatient, ownMongod } from '../support/store/mongo/mongod.ts';
import { resourcesFile } from '../support/resources/resources.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';
import { shared, testsWith } from '../support/tests-with.ts';

/** Counted from mongod's election. */
const RECOVERY_MS = 5_000;
/** The most that a test waits for mongod's election on a busy machine. */
const ELECTION_MS = 60_000;

const mongodOfFile = shared(ownMongod);
let databases = 0;

/** Declares tests that may kill the mongod of this file, and start it again. Each has a database of its own. */
const it = testsWith(async (t) => {
  const mongod = await mongodOfFile(t);
  const member = mongod?.members[0];
  return mongod && member ? { mongod, member, uri: impatient(mongod, `shop${databases++}`) } : null;
});

/** The first answer that is not 503. Each try waits for a server by itself. */
async function answered(server: TestServer, path: string, mostMs: number): Promise<Response> {
  const begun = performance.now();
  for (;;) {
    const response = await server.get(path);
    if (response.status !== 503 || performance.now() - begun > mostMs) return response;
    await response.arrayBuffer();
  }
}

it('a server starts without its MongoDB, reports that, and works again by itself when it is back', async ({
  mongod,
  member,
  uri,
}, t) => {
  const rows = catalogue(300);
  const settings = { MONGODB_URI: uri };
  await (await serverOn(t, settings)).insert(rows.map((row) => row.document));
  await member.kill();

  const server = await serverOn(t, settings);
  for (const path of ['/items', '/items/stream', '/items/5']) {
    const response = await server.get(path);
    assert.ok(Number(response.headers.get('retry-after')) > 0);
    const { status, code, detail } = await problemOf(response);
    assert.deepEqual([status, code], [503, 'store-unavailable'], path);
    assert.doesNotMatch(detail, /127\.0\.0\.1|Mongo/, 'no internals are shown');
  }
  const { status } = await problemOf(server.get('/items?cursor=&limit=1'));
  assert.equal(status, 400, 'a bad request is reported as such without a store');
  const ready = (await (await server.get('/readyz')).json()) as { status: string; reasons: string[] };
  assert.deepEqual([ready.status, ready.reasons.length], ['not ready', 1]);
  assert.equal((await server.get('/livez')).status, 200);

  await member.start();
  await mongod.primary();
  const back = performance.now();
  const response = await answered(server, '/items/stream', RECOVERY_MS);
  t.diagnostic(`serves again ${Math.round(performance.now() - back)} ms after the election`);
  assert.equal((await server.get('/readyz')).status, 200);
  assert.deepEqual(idsIn(await linesOf(response)), expectedIds(rows, 'id_asc'));
});

it('resources are served once their MongoDB answers, by a server that started without it', async ({
  member,
  uri,
}, t) => {
  const client = testClient(t, uri);
  for (const name of ['orders', 'my.notes'])
    await client
      .db()
      .collection(name)
      .insertMany([{ n: 1 }, { n: 2 }]);
  await client.db('crm').collection('customers').createIndex({ name: 1, _id: 1 });
  await client.db('crm').collection('customers').insertOne({ name: 'Ada' });
  await client.close();
  await member.kill();

  const file = await resourcesFile(t, {
    resources: { notes: { collection: 'my.notes' }, people: { collection: 'crm.customers', hide: ['card'] } },
  });
  const server = await serverOn(t, {
    MONGODB_URI: uri,
    EXPOSE: 'orders,crm.customers',
    RESOURCES_FILE: file,
  });
  const paths = ['/orders', '/customers', '/notes', '/people', '/orders/stream'];
  for (const path of paths) {
    const { status, code } = await problemOf(server.get(path));
    assert.deepEqual([status, code], [503, 'store-unavailable'], path);
  }
  assert.equal((await server.get('/readyz')).status, 503);
  const listed = (await jsonOf(server.get('/resources'))) as { resources: { unavailable?: string }[] };
  assert.ok(listed.resources.every(({ unavailable }, n) => n >= 5 || unavailable !== undefined));

  await member.start();
  for (const path of paths) {
    const response = await answered(server, path, ELECTION_MS);
    assert.equal(response.status, 200, path);
    await response.arrayBuffer();
  }
  const named = (await jsonOf(server.get('/customers?name=Ada'))) as { data: unknown[] };
  assert.equal(named.data.length, 1);
  const document = (await jsonOf(server.get('/openapi.json'))) as {
    paths: Record<string, { get?: { parameters?: { name?: string }[] } }>;
  };
  assert.ok(document.paths['/customers']?.get?.parameters?.some(({ name }) => name === 'name.gte'));
});

it('a name with dots that turns out to mean a collection of another name is served under that name', async ({
  member,
  uri,
}, t) => {
  const client = testClient(t, uri);
  await client.db().collection('my.notes').insertOne({ n: 1 });
  await client.close();
  await member.kill();
  const server = await serverOn(t, { MONGODB_URI: uri, EXPOSE: 'my.notes' });
  assert.equal((await server.get('/notes')).status, 503);
  await member.start();
  const back = performance.now();
  while (!(await server.reload()) && performance.now() - back < ELECTION_MS);
  assert.equal((await server.get('/my.notes')).status, 200);
  assert.equal((await server.get('/notes')).status, 404);
});

/** Readers of streams that run until reading stops. */
async function startStreams(server: TestServer) {
  const fill = 'x'.repeat(20_000);
  for (let i = 0; i < 10; i++) {
    await server.insert(catalogue(300).map((row) => ({ ...row.document, _id: `${i}-${row.id}`, fill })));
  }
  return Promise.all(
    ['identity', 'gzip', 'br'].map(async (coding) => {
      const response = await server.get('/items/stream', { 'accept-encoding': coding });
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      const { value } = await reader.read();
      return { reader, first: value ?? new Uint8Array(0) };
    }),
  );
}

it('a stream whose MongoDB is gone for longer than its retries is cut, never ended', async ({
  member,
  uri,
}, t) => {
  const readers = await startStreams(await serverOn(t, { MONGODB_URI: uri }, { retryMs: 500 }));
  await member.kill();
  for (const { reader } of readers)
    await assert.rejects(async () => {
      for (let done = false; !done;) ({ done } = await reader.read());
    });
  await member.start();
});

it('a stream whose MongoDB is killed and started again continues and is whole', async ({
  member,
  uri,
}, t) => {
  const readers = await startStreams(await serverOn(t, { MONGODB_URI: uri }));
  await member.kill();
  const reading = readers.map(async ({ reader, first }) => {
    const pieces = [first];
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) pieces.push(piece.value);
    return Buffer.concat(pieces).toString();
  });
  await member.start();
  for (const text of await Promise.all(reading)) {
    const ids = idsIn(text.trimEnd().split('\n'));
    assert.deepEqual([ids.length, new Set(ids).size], [3000, 3000]);
    assert.deepEqual(ids, ids.toSorted());
  }
});
