import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ordersOf, withOrders } from '../support/resources/orders.ts';
import { runPullOf } from '../support/pull/pulling.ts';
import { serverOn } from '../support/process/server.ts';
import { temporaryFolder } from '../support/directory.ts';

const ROWS = ordersOf(12_000);
const PAID = 'status=paid&sort=createdAt_desc';

test('a pull of a resource writes the bytes of its stream, whole and in parts', async (t) => {
  const settings = await withOrders(t, 'sqlite', ROWS);
  const server = await serverOn(t, settings);
  const directory = await temporaryFolder(t);
  for (const query of [
    PAID,
    'total.gte=500&total.lt=600&fields=total,customer.country',
    'status=none&sort=createdAt_asc',
  ]) {
    const file = join(directory, 'orders.ndjson');
    const { code, text } = await runPullOf([`${server.url}/orders?${query}`, '-o', file]);
    assert.equal(code, 0, text);
    const streamed = await (await server.get(`/orders/stream?${query}`)).text();
    assert.equal(await readFile(file, 'utf8'), streamed, query);
  }
  const parts = join(directory, 'parts.ndjson');
  const all = await runPullOf([`${server.url}/orders/stream`, '-o', parts, '--parallel', '3']);
  assert.equal(all.code, 0, all.text);
  assert.equal(await readFile(parts, 'utf8'), await (await server.get('/orders/stream')).text());
  assert.match(all.text, /3 parts|12,000 rows/);
  const refused = await runPullOf([`${server.url}/orders?status=paid`, '-o', parts, '--parallel', '3']);
  assert.equal(refused.code, 1);
  assert.match(refused.text, /No index answers this query/);
  const unknown = await runPullOf([`${server.url}/nowhere`, '-o', parts]);
  assert.equal(unknown.code, 1);
  assert.match(unknown.text, /\/nowhere\/stream/);
});
