import assert from 'node:assert/strict';
import { test } from 'node:test';
import { awaited, exportRows, order } from '../support/exports/exports.ts';
import { serverOn, testServer } from '../support/process/server.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';

/** A third of them, of one category, is more than a store counts for an estimate. */
const MANY = 33_000;

for (const store of ['sqlite', 'mongodb'] as const)
  test(`${store}: an export shows how many rows it will have, also of a filter that many pass`, async (t) => {
    const server = await testServer(t, store, 'uws');
    if (!server) return;
    await server.insert(exportRows(MANY));
    for (const [body, rows] of [
      [{ format: 'ndjson' }, MANY],
      [{ format: 'ndjson', category: 'books' }, MANY / 3],
    ] as const) {
      const { progress } = await awaited(server.url, (await order(server.url, body)).id);
      assert.deepEqual([progress.estimatedRows, progress.rows], [rows, rows]);
    }
  });

test('MongoDB counts no rows for the estimate of an export of all', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const server = await serverOn(t, { HTTP_ENGINE: 'uws', MONGODB_URI: uri });
  await server.insert(exportRows(100));
  const db = testClient(t, uri).db();
  await db.setProfilingLevel('all');
  await awaited(server.url, (await order(server.url, { format: 'ndjson' })).id);
  await db.setProfilingLevel('off');
  const counts = await db.collection('system.profile').find({ 'command.count': 'items' }).toArray();
  assert.deepEqual(
    counts.map(({ planSummary }): unknown => planSummary),
    ['RECORD_STORE_FAST_COUNT'],
  );
});
