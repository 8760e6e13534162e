import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { jsonOf } from '../support/answers.ts';
import { openDirectory } from '../support/exports/export-worker.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { ORDER_INDEXES, ordersOf, withOrders } from '../support/resources/orders.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';

const ROWS = ordersOf(100);

interface Described {
  /** The names of the parameters of GET /orders. */
  readonly parameters: readonly string[];
  /** The indexes that GET /resources lists. */
  readonly indexes: readonly string[];
  readonly etag: string;
}

async function described(server: TestServer): Promise<Described> {
  // The list waits for a slow store. The document leaves out what the store has not said within a second.
  const { resources } = (await jsonOf(server.get('/resources'))) as {
    resources: { name: string; queries: { index: string }[] }[];
  };
  const document = await server.get('/openapi.json');
  const { paths } = (await document.json()) as {
    paths: Record<string, { get: { parameters: { name: string }[] } }>;
  };
  const orders = resources.find(({ name }) => name === 'orders');
  return {
    parameters: paths['/orders']?.get.parameters.map(({ name }) => name) ?? [],
    indexes: orders?.queries.map(({ index }) => index) ?? [],
    etag: document.headers.get('etag') ?? '',
  };
}

test('mongodb: /openapi.json and GET /resources follow the indexes of a resource without a restart', async (t) => {
  const settings = await withOrders(t, 'mongodb', ROWS);
  if (!settings?.MONGODB_URI) return;
  const collection = testClient(t, settings.MONGODB_URI).db().collection('orders');
  const server = await serverOn(t, settings);
  const before = await described(server);
  assert.ok(before.parameters.includes('total') && !before.parameters.includes('note'));
  assert.deepEqual(await described(server), before, 'nothing changes by itself');
  await collection.createIndex({ note: 1, _id: 1 });
  await collection.dropIndex('total_1__id_1');
  const refused = await server.get('/orders?total=7'); // meets the change, so the indexes are read again
  assert.ok(refused.status >= 400);
  const after = await described(server);
  assert.ok(after.parameters.includes('note.gte') && !after.parameters.includes('total'));
  assert.ok(after.indexes.includes('note_1__id_1') && !after.indexes.includes('total_1__id_1'));
  assert.notEqual(after.etag, before.etag);
  const unchanged = await server.get('/openapi.json', { 'if-none-match': after.etag });
  assert.equal(unchanged.status, 304);
  assert.equal((await server.get('/orders?sort=note_desc')).status, 200);
});

test('sqlite: /openapi.json follows an index that another process adds', async (t) => {
  const settings = await withOrders(t, 'sqlite', ROWS);
  const server = await serverOn(t, settings);
  assert.ok(!(await described(server)).parameters.includes('note'));
  const { store } = await openDirectory(settings.DATA_DIR ?? '');
  t.after(() => store.close());
  await store.open({ name: 'orders', collection: 'orders', indexes: [...ORDER_INDEXES, ['note']] });
  while (!(await described(server)).parameters.includes('note')) await sleep(5); // while the index is built
  assert.equal((await server.get('/orders?sort=note_desc')).status, 200);
});
