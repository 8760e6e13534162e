import assert from 'node:assert/strict';
import { test } from 'node:test';
import { catalogue, expectedIds } from './support/catalogue.ts';
import { ownMongod, withDatabase } from './support/mongod.ts';
import { serverOn } from './support/server.ts';

test('a server whose MongoDB is away starts, says so, and works again by itself when it is back', async (t) => {
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
      assert.equal(response.status, 400, 'a bad request is told as such, store or no store');
      continue;
    }
    assert.deepEqual([response.status, problem.code], [503, 'store-unavailable'], path);
    assert.ok(Number(response.headers.get('retry-after')) > 0);
    assert.doesNotMatch(problem.detail, /127\.0\.0\.1|Mongo/, 'nothing of the inside is told');
  }

  await member.start();
  let response = await server.get('/items/stream');
  for (const deadline = Date.now() + 60_000; response.status === 503 && Date.now() < deadline;) {
    await response.arrayBuffer();
    response = await server.get('/items/stream'); // each try waits for a server by itself
  }
  assert.equal(response.status, 200);
  const ids = (await response.text())
    .split('\n')
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { id: string | number }).id);
  assert.deepEqual(ids, expectedIds(rows, 'id_asc'));
});

test('a stream whose MongoDB dies under it is cut, never ended', async (t) => {
  const mongod = await ownMongod(t);
  if (!mongod) return;
  const server = await serverOn(t, { MONGODB_URI: withDatabase(mongod.uri, 'shop') });
  const fill = 'x'.repeat(20_000);
  for (let i = 0; i < 10; i++) {
    await server.insert(catalogue(300).map((row) => ({ ...row.document, _id: `${i}-${row.id}`, fill })));
  }
  const readers = await Promise.all(
    ['identity', 'gzip', 'br'].map(async (coding) => {
      const response = await server.get('/items/stream', { 'accept-encoding': coding });
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      await reader.read(); // it runs, and stops where nobody reads on
      return reader;
    }),
  );
  await mongod.members[0]?.kill();
  for (const reader of readers) {
    await assert.rejects(async () => {
      for (let done = false; !done;) ({ done } = await reader.read());
    });
  }
});
