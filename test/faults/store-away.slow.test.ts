import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { ServerOptions } from '../../src/server-options.ts';
import { catalogue, expectedIds } from '../support/resources/catalogue.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { ownMongod, withDatabase } from '../support/store/mongo/mongod.ts';
import { resourcesFile } from '../support/resources/resources.ts';
import { serverOn } from '../support/process/server.ts';

/** Counted from mongod's next answer, its election included. */
const RECOVERY_MS = 5_000;
/** The most that a test waits for mongod's election on a busy machine. */
const ELECTION_MS = 60_000;

test('a server starts without its MongoDB, reports that, and works again by itself when it is back', async (t) => {
  const mongod = await ownMongod(t);
  const member = mongod?.members[0];
  if (!mongod || !member) return;
  const rows = catalogue(300);
  const settings = { MONGODB_URI: withDatabase(mongod.uri, 'shop') };
  await (await serverOn(t, settings)).insert(rows.map((row) => row.document));
  await member.kill();

  const server = await serverOn(t, settings);
  for (const path of ['/items', '/items/stream', '/items/5', '/items?cursor=&limit=1']) {
    const response = await server.get(path);
    const problem = (await response.json()) as { code: string; detail: string };
    if (path.includes('cursor=')) {
      assert.equal(response.status, 400, 'a bad request is reported as such without a store');
      continue;
    }
    assert.deepEqual([response.status, problem.code], [503, 'store-unavailable'], path);
    assert.ok(Number(response.headers.get('retry-after')) > 0);
    assert.doesNotMatch(problem.detail, /127\.0\.0\.1|Mongo/, 'no internals are shown');
  }

  const { status, reasons } = (await (await server.get('/readyz')).json()) as {
    status: string;
    reasons: string[];
  };
  assert.deepEqual([status, reasons.length], ['not ready', 1]);
  assert.equal((await server.get('/livez')).status, 200);

  await member.start();
  const back = performance.now();
  let response = await server.get('/items/stream');
  while (response.status === 503 && performance.now() - back < RECOVERY_MS) {
    await response.arrayBuffer();
    response = await server.get('/items/stream'); // each try waits for a server by itself
  }
  t.diagnostic(`serves again ${Math.round(performance.now() - back)} ms after mongod answers`);
  assert.equal(response.status, 200);
  assert.equal((await server.get('/readyz')).status, 200);
  const ids = (await response.text())
    .split('\n')
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { id: string | number }).id);
  assert.deepEqual(ids, expectedIds(rows, 'id_asc'));
});

test('resources are served once their MongoDB answers, by a server that started without it', async (t) => {
  const mongod = await ownMongod(t);
  const member = mongod?.members[0];
  if (!mongod || !member) return;
  const uri = withDatabase(mongod.uri, 'shop');
  const client = testClient(t, uri);
  const names = ['orders', 'my.notes'];
  for (const name of names)
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
    const response = await server.get(path);
    const { code } = (await response.json()) as { code: string };
    assert.deepEqual([response.status, code], [503, 'store-unavailable'], path);
  }
  assert.equal((await server.get('/readyz')).status, 503);
  const listed = (await (await server.get('/resources')).json()) as { resources: { unavailable?: string }[] };
  assert.ok(listed.resources.every(({ unavailable }, n) => n >= 5 || unavailable !== undefined));

  await member.start();
  const back = performance.now();
  for (const path of paths) {
    let response = await server.get(path);
    while (response.status === 503 && performance.now() - back < ELECTION_MS) {
      await response.arrayBuffer();
      response = await server.get(path);
    }
    assert.equal(response.status, 200, path);
    await response.arrayBuffer();
  }
  const named = (await (await server.get('/customers?name=Ada')).json()) as { data: unknown[] };
  assert.equal(named.data.length, 1);
  const document = (await (await server.get('/openapi.json')).json()) as {
    paths: Record<string, { get?: { parameters?: { name?: string }[] } }>;
  };
  assert.ok(document.paths['/customers']?.get?.parameters?.some(({ name }) => name === 'name.gte'));
});

test('a name with dots that turns out to mean a collection of another name is served under that name', async (t) => {
  const mongod = await ownMongod(t);
  const member = mongod?.members[0];
  if (!mongod || !member) return;
  const uri = withDatabase(mongod.uri, 'shop');
  const client = testClient(t, uri);
  await client.db().collection('my.notes').insertOne({ n: 1 });
  await client.close();
  await member.kill();
  const server = await serverOn(t, { MONGODB_URI: uri, EXPOSE: 'my.notes' });
  await member.start();
  const back = performance.now();
  assert.equal((await server.get('/notes')).status, 503);
  while (!(await server.reload()) && performance.now() - back < ELECTION_MS);
  assert.equal((await server.get('/my.notes')).status, 200);
  assert.equal((await server.get('/notes')).status, 404);
});

/** A server on its own MongoDB, with streams that run until reading stops. */
async function streamsOn(t: TestContext, options: ServerOptions) {
  const mongod = await ownMongod(t);
  const member = mongod?.members[0];
  if (!mongod || !member) return null;
  const server = await serverOn(t, { MONGODB_URI: withDatabase(mongod.uri, 'shop') }, options);
  const fill = 'x'.repeat(20_000);
  for (let i = 0; i < 10; i++) {
    await server.insert(catalogue(300).map((row) => ({ ...row.document, _id: `${i}-${row.id}`, fill })));
  }
  const readers = await Promise.all(
    ['identity', 'gzip', 'br'].map(async (coding) => {
      const response = await server.get('/items/stream', { 'accept-encoding': coding });
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      const { value } = await reader.read();
      return { reader, first: value ?? new Uint8Array(0) };
    }),
  );
  return { member, readers };
}

test('a stream whose MongoDB is gone for longer than its retries is cut, never ended', async (t) => {
  const streams = await streamsOn(t, { retryMs: 500 });
  if (!streams) return;
  await streams.member.kill();
  for (const { reader } of streams.readers)
    await assert.rejects(async () => {
      for (let done = false; !done;) ({ done } = await reader.read());
    });
});

test('a stream whose MongoDB is killed and started again continues and is whole', async (t) => {
  const streams = await streamsOn(t, {});
  if (!streams) return;
  await streams.member.kill();
  const reading = streams.readers.map(async ({ reader, first }) => {
    const pieces = [first];
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) pieces.push(piece.value);
    return Buffer.concat(pieces).toString();
  });
  await streams.member.start();
  for (const text of await Promise.all(reading)) {
    const ids = text
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { id: string }).id);
    assert.deepEqual([ids.length, new Set(ids).size], [3000, 3000]);
    assert.deepEqual(ids, ids.toSorted());
  }
});
