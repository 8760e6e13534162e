import assert from 'node:assert/strict';
import { request as ask, type IncomingHttpHeaders } from 'node:http';
import { test } from 'node:test';
import { codings } from '../../src/pipeline/compress.ts';
import { jsonOf, textOf, type Page } from '../support/answers.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { awaited, order } from '../support/exports/exports.ts';
import { resourceServer, resourcesFile } from '../support/resources/resources.ts';
import type { TestServer } from '../support/process/server.ts';
import { usersAt } from '../support/users/users.ts';

interface Answered {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: number;
}

/** An answer with exactly the received headers. fetch hides some and adds some. */
function answer(url: string, method: string, headers: Record<string, string>): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const asked = ask(url, { method, headers, agent: false }, (response) => {
      let bytes = 0;
      response.on('data', (piece: Buffer) => (bytes += piece.length));
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, bytes }));
    });
    asked.on('error', reject).end();
  });
}

/** The `operationId 304` of all operations that may answer 304. */
async function operationsOf(server: TestServer): Promise<readonly string[]> {
  const { paths } = (await jsonOf(server.get('/openapi.json'))) as {
    paths: Record<string, Record<string, { operationId: string; responses: object }>>;
  };
  return Object.values(paths)
    .flatMap((methods) => Object.values(methods))
    .filter(({ responses }) => '304' in responses)
    .map(({ operationId }) => `${operationId} 304`);
}

const ORDERS = { name: 'orders', rows: [{ _id: 'a', total: 1 }], indexes: [['total']] };

/** The headers that a 304 repeats from its 200 (RFC 9110, 15.4.5). */
const REPEATED = ['etag', 'vary', 'cache-control', 'content-location', 'expires'];
/** The headers that describe a body, which a 304 does not have. */
const ABSENT = [
  ...['content-type', 'content-encoding', 'content-disposition', 'content-length'],
  ...['accept-ranges', 'repr-digest', 'transfer-encoding'],
];

test('a 304 of every resource has the ETag and the headers of its 200, in any coding', async (t) => {
  const RESOURCES_FILE = await resourcesFile(t, { resources: { items: {} } });
  const server = await resourceServer(t, 'sqlite', ORDERS, { RESOURCES_FILE });
  const text = 'lorem ipsum '.repeat(200);
  await server.insert(catalogue(50).map(({ document }) => ({ ...document, text })));
  const { data } = (await jsonOf(server.get('/items?limit=1'))) as Page<{ id: string }>;
  const user = { name: 'Ada', email: 'ada@example.org' };
  await usersAt(server.url).put('0190b5a8-0000-7000-8000-000000000000', user);
  const { file } = await awaited(server.url, (await order(server.url, { resource: 'items' })).id);
  const page = await textOf(server.get('/'));
  const assets = [...page.matchAll(/(?:href|src)="(\/explorer\/[^"]+)"/g)].map(([, path = '']) => path);
  const { clients } = (await jsonOf(server.get('/clients'))) as { clients: { url: string }[] };
  const paths = [
    ...clients.map(({ url }) => url),
    ...['/', ...assets, '/docs', '/docs/start.js', '/docs/scalar.js', '/openapi.json'],
    ...['/items', '/items?limit=1&fields=price', '/items?page=2&limit=10', `/items/${data[0]?.id ?? ''}`],
    ...['/api/users', '/api/users/0190b5a8-0000-7000-8000-000000000000', file?.url ?? ''],
    ...['/orders', '/orders?total=1', '/orders/a'],
  ];
  let coded = 0;
  for (const [n, path] of paths.entries())
    for (const coding of ['identity', codings[n % codings.length] ?? ''])
      for (const method of ['GET', 'HEAD']) {
        const what = `${method} ${path}, ${coding}`;
        const accept = { 'accept-encoding': coding };
        const whole = await answer(server.url + path, method, accept);
        assert.equal(whole.status, 200, what);
        const { etag } = whole.headers;
        assert.ok(etag, what);
        if (whole.headers['content-encoding'] === coding) coded++;
        const known = await answer(server.url + path, method, { ...accept, 'if-none-match': etag });
        assert.equal(known.status, 304, what);
        assert.equal(known.bytes, 0, what);
        for (const name of REPEATED)
          assert.equal(known.headers[name], whole.headers[name], `${what}: ${name}`);
        for (const name of ABSENT) assert.equal(known.headers[name], undefined, `${what}: ${name}`);
      }
  const silent = (await operationsOf(server)).filter((operation) => !server.check.seen.has(operation));
  assert.deepEqual(silent, [], 'every operation that may answer 304 did');
  assert.ok(coded >= 20, `${coded} answers had a coding`);
});
