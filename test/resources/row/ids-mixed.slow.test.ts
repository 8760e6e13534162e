import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ObjectId } from '../../../src/store/values/bson.ts';
import { testServer } from '../../support/process/server.ts';

const HEX = '0123456789abcdef01234567';

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
