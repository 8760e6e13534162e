import assert from 'node:assert/strict';
import { BSON } from '../../src/store/values/bson.ts';
import { awaited, order } from '../support/exports/exports.ts';
import { onCombinations } from '../support/process/each-server.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';
import { ordersOf } from '../support/resources/orders.ts';
import { filled } from '../support/resources/resources.ts';

const ID = '000000000000000000000003';
/**
 * What to ask of a documented path, where the path itself is not a request. EXPORT: the id of an export. SINCE: a cursor,
 * behind which rows have changed.
 */
const REQUESTS: Readonly<Record<string, readonly string[]>> = {
  '/api/users/{id}': ['/api/users/nobody'],
  '/exports/{id}': ['/exports/EXPORT', '/exports/0123456789abcdef0123456789abcdef'],
  '/exports/{id}/file': ['/exports/EXPORT/file'],
  '/changes': ['/changes?resources=orders,more', '/changes?resources=orders,more&since=SINCE', '/changes'],
  '/problems/{code}': ['/problems/internal', '/problems/nothing'],
  '/orders': ['/orders', '/orders?sort=total_desc&count=exact', '/orders?sort=nothing_asc'],
  '/orders/stream': [
    ...['', '?checkpoints=true', '?format=csv', '?total=7', '?follow=true', '?part=none'].map(
      (query) => `/orders/stream${query}`,
    ),
  ],
  '/orders/changes': ['/orders/changes', '/orders/changes?follow=true', '/orders/changes?since=none'],
  '/orders/values': ['/orders/values?field=status&count=exact', '/orders/values'],
  '/more/changes': ['/more/changes', '/more/changes?since=SINCE', '/more/changes?since=none'],
  '/more/{id}': ['/more/nobody'],
  '/orders/{id}': [`/orders/${ID}`, '/orders/nobody'],
};
/** Headers that differ between two answers to one request. */
const OWN = ['x-request-id', 'date', 'changes-from', 'etag'];
/** Headers of the connection, and how a body is framed. */
const OF_TRANSFER = ['connection', 'keep-alive', 'transfer-encoding', 'content-length'];

onCombinations(
  async (t, { store, engine }) => {
    const rows = ordersOf(20);
    const indexes = [['status'], ['total']];
    const settings = await filled(t, store, [
      { name: 'orders', rows, indexes },
      { name: 'more', rows: ordersOf(3), indexes: [] },
    ]);
    return settings && serverOn(t, { ...settings, HTTP_ENGINE: engine, RATE_LIMIT: 'off' });
  },
  (test) =>
    test('HEAD answers what GET answers, without a body, at every path of the document', async (server) => {
      const { paths } = (await (await server.get('/openapi.json')).json()) as {
        paths: Record<string, { get?: object }>;
      };
      const { id } = await order(server.url, { resource: 'orders' });
      await awaited(server.url, id);
      const cursorAt = async (path: string) =>
        /"cursor":"([^"]+)"/.exec(await (await server.get(path)).text())?.[1] ?? assert.fail();
      const all = await cursorAt('/changes?resources=orders,more');
      const one = await cursorAt('/more/changes');
      const more = await server.store.open({ name: 'more', collection: 'more', indexes: [] });
      await more.insert([BSON.serialize({ _id: 'new' })], 'fail');
      const documented = Object.keys(paths).filter((path) => paths[path]?.get);
      assert.ok(documented.length > 20);
      for (const path of documented) {
        assert.ok(
          REQUESTS[path] ?? !path.includes('{'),
          `a request for ${path} is in the table of this test`,
        );
        for (const request of REQUESTS[path] ?? [path]) {
          const since = path === '/changes' ? all : one;
          const asked = request.replace('EXPORT', id).replace('SINCE', since);
          assert.deepEqual(await headOf(server, 'HEAD', asked), await headOf(server, 'GET', asked), asked);
        }
      }
    }),
);

/** Status and headers of an answer. */
async function headOf(server: TestServer, method: string, path: string) {
  const response = await fetch(server.url + path, { method });
  const { status, headers, body } = response;
  await body?.cancel(); // some never end
  if (method === 'HEAD') assert.equal(body, null);
  return {
    status,
    headers: [...headers].filter(([name]) => ![...OWN, ...OF_TRANSFER].includes(name)).sort(),
    own: OWN.filter((name) => headers.has(name)),
  };
}
