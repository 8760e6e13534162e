import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import type { Export } from '../../src/exports/export.ts';
import { awaited, exportRows, fileOf, order } from '../support/exports/exports.ts';
import { ownMongod } from '../support/store/mongo/mongod.ts';
import { serverOn } from '../support/process/server.ts';

const ROWS = process.env.LONG ? 100_000 : 30_000;
const ORDERS = [
  { format: 'csv', compression: 'br' },
  { format: 'json', compression: 'gzip', sort: 'price_desc' },
  { format: 'arrow', compression: 'none' },
];

test('an export is whole and the same when the primary of its MongoDB is killed', async (t) => {
  const set = await ownMongod(t, { members: 3, electionMs: 2_000, cacheGB: 0.25 });
  if (!set) return;
  const server = await serverOn(t, { MONGODB_URI: set.uri }, { leaseMs: 2_000 });
  await server.insert(exportRows(ROWS));
  const listed = async () => ((await (await server.get('/exports')).json()) as { data: Export[] }).data;
  for (const body of ORDERS) await order(server.url, body);
  while ((await listed()).every(({ state, progress }) => state !== 'complete' && progress.rows === 0))
    await sleep(10);
  await (await set.primary()).kill();
  await set.primary(); // the newly elected one
  while (!(await server.get('/readyz')).ok) await sleep(10);
  const interrupted = await listed();
  assert.equal(interrupted.length, ORDERS.length);
  for (const { id } of interrupted) {
    const made = await awaited(server.url, id);
    const { format } = made.request;
    const again = await order(server.url, ORDERS.find((body) => body.format === format) ?? {});
    const reference = await awaited(server.url, again.id);
    assert.equal(reference.file?.rows, ROWS);
    assert.deepEqual([made.file?.rows, made.file?.sha256], [ROWS, reference.file.sha256], format);
    const digest = createHash('sha256').update(await fileOf(server.url, made));
    assert.equal(digest.digest('hex'), made.file?.sha256);
    assert.equal(made.consistency, 'snapshot');
  }
});
