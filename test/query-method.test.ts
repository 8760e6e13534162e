import assert from 'node:assert/strict';
import { METHODS } from 'node:http';
import { describe, test } from 'node:test';
import { Decimal128 } from 'mongodb';
import { MAX_QUERY_BYTES } from '../src/input/query-body.ts';
import { catalogue, expectedIds } from './support/catalogue.ts';
import { whyNoUws } from './support/engines.ts';
import { samples } from './support/metrics.ts';
import { resourceServer } from './support/resources.ts';
import { testServer, type EngineName, type StoreName, type TestServer } from './support/server.ts';

type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function ask(
  server: TestServer,
  path: string,
  body: Json,
  headers: Record<string, string> = {},
): Promise<Answered> {
  return send(server, path, JSON.stringify(body), { 'content-type': 'application/json', ...headers });
}

async function send(
  server: TestServer,
  path: string,
  body: string,
  headers: Record<string, string>,
): Promise<Answered> {
  // A Uint8Array gets no Content-Type from fetch.
  const response = await fetch(server.url + path, { method: 'QUERY', headers, body: Buffer.from(body) });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Why an engine cannot take QUERY here. false: it can. */
function whyNot(engine: EngineName): string | false {
  if (engine === 'uws') return whyNoUws() ?? false;
  return METHODS.includes('QUERY') ? false : `the HTTP parser of Node ${process.version} does not know QUERY`;
}

test('the node engine takes QUERY where the HTTP parser of Node knows it, and answers 400 elsewhere', async (t) => {
  const server = await testServer(t, 'lmdb', 'node');
  assert.ok(server);
  const { status } = await ask(server, '/items', {});
  assert.equal(status, METHODS.includes('QUERY') ? 200 : 400);
});

const COMBINATIONS: [StoreName, EngineName][] = [
  ['lmdb', 'uws'],
  ['lmdb', 'node'],
  ['mongodb', 'uws'],
];

for (const [store, engine] of COMBINATIONS)
  describe(`QUERY on ${store} behind ${engine}`, { skip: whyNot(engine) }, () => {
    test('a QUERY has the answer of the GET with the same parameters, and names it in Location', async (t) => {
      const server = await testServer(t, store, engine);
      if (!server) return;
      await server.insert(catalogue(60, 'string').map((row) => row.document));
      const asked: [path: string, body: Json, query: string][] = [
        ['/items', {}, ''],
        [
          '/items',
          { limit: 7, sort: 'price_desc', category: 'music' },
          'limit=7&sort=price_desc&category=music',
        ],
        [
          '/items',
          { min_price: 2.5, max_price: '5', count: 'exact' },
          'min_price=2.5&max_price=5&count=exact',
        ],
        [
          '/items',
          { fields: ['price', 'category'], page: 2, limit: 9 },
          'fields=price%2Ccategory&page=2&limit=9',
        ],
        ['/items', { fields: 'price,category', offset: '3' }, 'fields=price%2Ccategory&offset=3'],
        ['/items/stream', {}, ''],
        ['/items/stream', { format: 'csv', safe: true, limit: 5 }, 'format=csv&safe=true&limit=5'],
        ['/items/stream', { sort: 'id_desc', fields: ['price'] }, 'sort=id_desc&fields=price'],
      ];
      for (const [path, body, query] of asked) {
        const url = query === '' ? path : `${path}?${query}`;
        const got = await server.get(url);
        const queried = await ask(server, path, body);
        assert.equal(queried.status, 200, queried.text);
        assert.equal(queried.text, await got.text(), url);
        assert.equal(queried.headers.get('location'), url);
        for (const name of ['etag', 'link', 'content-type', 'cache-control', 'vary'])
          assert.equal(queried.headers.get(name), got.headers.get(name), `${name} of ${url}`);
      }
      const accepted = await ask(server, '/items/stream', { limit: 1 }, { accept: 'text/csv' });
      assert.match(accepted.headers.get('content-type') ?? '', /^text\/csv/);
    });

    test('the conditions of a QUERY are those of a GET', async (t) => {
      const server = await testServer(t, store, engine);
      if (!server) return;
      await server.insert(catalogue(9).map((row) => row.document));
      const etag = (await server.get('/items?limit=3')).headers.get('etag') ?? '';
      const known = await ask(server, '/items', { limit: 3 }, { 'if-none-match': etag });
      assert.deepEqual([known.status, known.text, known.headers.get('etag')], [304, '', etag]);
      assert.equal((await ask(server, '/items', { limit: 4 }, { 'if-none-match': etag })).status, 200);
      assert.equal((await ask(server, '/items', { limit: 3 }, { 'if-match': '"x"' })).status, 412);
      assert.equal((await ask(server, '/items', { limit: 3 }, { 'if-match': 'x' })).status, 400);
    });

    test('parameters too long for a URL are walked by the cursors in the pages, and stream', async (t) => {
      const server = await testServer(t, store, engine);
      if (!server) return;
      const rows = catalogue(30, 'string');
      await server.insert(rows.map((row) => row.document));
      const fields = ['price', ...Array.from({ length: 99 }, (_, n) => `${'f'.repeat(250)}${n}`)];
      const ids: string[] = [];
      for (let cursor: string | null = null, more = true; more;) {
        const { status, text, headers } = await ask(server, '/items', {
          fields,
          limit: 7,
          sort: 'price_asc',
          ...(cursor !== null && { cursor }),
        });
        assert.equal(status, 200, text);
        assert.deepEqual([headers.get('location'), headers.get('link')], [null, null]);
        const { data, page } = JSON.parse(text) as {
          data: { id: string; price: number }[];
          page: { hasMore: boolean; nextCursor: string };
        };
        assert.deepEqual(Object.keys(data[0] ?? {}), ['id', 'price']);
        ids.push(...data.map(({ id }) => id));
        ({ nextCursor: cursor, hasMore: more } = page);
      }
      assert.deepEqual(ids, expectedIds(rows, 'price_asc'));
      const streamed = await ask(server, '/items/stream', { fields, sort: 'price_asc', checkpoints: true });
      const lines = streamed.text.trim().split('\n');
      assert.match(lines.pop() ?? '', /^{"end":{.*"rows":30/);
      assert.deepEqual(
        lines.map((line) => (JSON.parse(line) as { id: string }).id),
        ids,
      );
    });

    test('a resource is asked with values of JSON, whose types need no prefix', async (t) => {
      const rows = Array.from({ length: 60 }, (_, n) => ({
        _id: `r${String(n).padStart(3, '0')}`,
        ref: n < 10 ? 42 : n < 20 ? '42' : `ref ${n}`,
        flag: n % 4 === 0 ? true : n % 4 === 1 ? 'true' : null,
        total: n % 2 === 0 ? 7.5 : Decimal128.fromString('7.5'),
        at: new Date(Date.UTC(2026, 0, 1 + n)),
      }));
      const indexes = [['ref'], ['flag'], ['total'], ['at']];
      const server = await resourceServer(t, store, { name: 'orders', rows, indexes }, {}, engine);
      if (!server) return;
      const idsOf = async (body: Json) => {
        const { status, text } = await ask(server, '/orders', { limit: 100, ...(body as object) });
        assert.equal(status, 200, text);
        return (JSON.parse(text) as { data: { id: string }[] }).data.map(({ id }) => id);
      };
      const where = (test: (n: number) => boolean) => rows.map(({ _id }) => _id).filter((_, n) => test(n));
      assert.deepEqual(
        await idsOf({ ref: 42 }),
        where((n) => n < 10),
      );
      assert.deepEqual(
        await idsOf({ ref: 'str:42' }),
        where((n) => n >= 10 && n < 20),
      );
      assert.deepEqual(await idsOf({ ref: 'x'.repeat(60_000) }), []);
      assert.deepEqual(
        await idsOf({ flag: true }),
        where((n) => n % 4 === 0),
      );
      assert.deepEqual(
        await idsOf({ flag: null }),
        where((n) => n % 4 > 1),
      );
      assert.deepEqual(
        await idsOf({ total: 7.5 }),
        where(() => true),
      );
      assert.deepEqual(
        await idsOf({ 'total.gt': 7.49, 'total.lt': 8 }),
        where(() => true),
      );
      assert.deepEqual(await idsOf({ 'total.gt': 7.51 }), []);
      const zone = '2026-01-05T01:00:00+01:00';
      assert.deepEqual(
        await idsOf({ 'at.lt': zone, sort: 'at_asc' }),
        where((n) => n < 4),
      );
      const codes = async (body: Json) => {
        const { text } = await ask(server, '/orders', body);
        return (JSON.parse(text) as { code: string }).code;
      };
      assert.equal(await codes({ ref: '42' }), 'ambiguous-value');
      assert.equal(await codes({ ref: [42] }), 'invalid-body');
      assert.equal(await codes({ 'total.gt': null }), 'invalid-parameter');
      assert.equal(await codes({ ref: 42, 'ref.eq': 42 }), 'duplicate-parameter');
      assert.equal(await codes({ ref: 42, sort: 'total_asc' }), 'not-indexed');
      assert.equal(await codes({ follow: true }), 'unknown-parameter');
      const streamed = await ask(server, '/orders/stream', { ref: 42, fields: ['ref'] });
      assert.equal(streamed.text.split('\n')[0], '{"id":"r000","ref":42}');
      assert.equal(streamed.headers.get('location'), '/orders/stream?ref=int%3A42&fields=ref');
      const found = await server.get(streamed.headers.get('location') ?? '');
      assert.equal(await found.text(), streamed.text);
    });

    if (store === 'lmdb')
      test('content that is no query is refused with its fault', async (t) => {
        const server = await testServer(t, store, engine);
        if (!server) return;
        const refused = async (body: string, type: string | undefined, path = '/items') => {
          const headers = type === undefined ? {} : { 'content-type': type };
          const { status, headers: told, text } = await send(server, path, body, headers);
          const { code, errors } = JSON.parse(text) as { code: string; errors?: { pointer: string }[] };
          return [status, code, told.get('accept-query') ?? errors?.map(({ pointer }) => pointer).join()];
        };
        const json = 'application/json';
        const cases: [body: string, type: string | undefined, status: number, code: string, told?: string][] =
          [
            ['{}', undefined, 415, 'unsupported-media-type', json],
            ['limit=2', 'application/x-www-form-urlencoded', 415, 'unsupported-media-type', json],
            ['{}', 'application/json; charset=latin1', 415, 'unsupported-media-type', json],
            ['', json, 400, 'malformed-json'],
            ['{', json, 400, 'malformed-json'],
            ['[]', json, 422, 'invalid-body', ''],
            ['null', json, 422, 'invalid-body', ''],
            ['{"limit":{}}', json, 422, 'invalid-body', '/limit'],
            ['{"limit":[2]}', json, 422, 'invalid-body', '/limit'],
            ['{"category":null}', json, 422, 'invalid-body', '/category'],
            ['{"limit":1,"limit":2}', json, 422, 'invalid-body', '/limit'],
            ['{"fields":["a","b,c",3]}', json, 422, 'invalid-body', '/fields/1,/fields/2'],
            ['{"fields":[]}', json, 400, 'invalid-parameter'],
            ['{"limit":0}', json, 400, 'invalid-parameter'],
            ['{"limit":2.0}', json, 400, 'invalid-parameter'],
            ['{"min_price":1e9999}', json, 400, 'invalid-parameter'],
            ['{"offset":1,"page":1}', json, 400, 'conflicting-parameters'],
            ['{"nope":1}', json, 400, 'unknown-parameter'],
            [`{"category":"${'x'.repeat(MAX_QUERY_BYTES)}"}`, json, 413, 'body-too-large'],
            [`{"category":"${'x'.repeat(2 * 1024 * 1024)}"}`, json, 413, 'body-too-large'],
          ];
        for (const [body, type, status, code, told] of cases)
          assert.deepEqual(await refused(body, type), [status, code, told], `${type}: ${body.slice(0, 60)}`);
        assert.deepEqual(await refused('{}', json, '/items?limit=2'), [400, 'unknown-parameter', undefined]);
        assert.deepEqual(await refused('{}', json, '/items/a'), [405, 'method-not-allowed', undefined]);
        const padded = JSON.stringify({ limit: 1 }).padEnd(MAX_QUERY_BYTES);
        assert.equal((await send(server, '/items', padded, { 'content-type': json })).status, 200);
        assert.equal((await ask(server, '/items', {}, { accept: 'text/html' })).status, 406);
      });

    if (store === 'lmdb')
      test('OPTIONS and preflights name QUERY, and the limits and metrics of GET apply to it', async (t) => {
        const server = await testServer(t, store, engine, { RATE_LIMIT: '9/h', CORS_ORIGIN: '*' });
        if (!server) return;
        const headers = { origin: 'https://a.example', 'access-control-request-method': 'QUERY' };
        for (const path of ['/items', '/items/stream']) {
          const options = await fetch(server.url + path, { method: 'OPTIONS', headers });
          assert.equal(options.headers.get('allow'), 'GET, QUERY, HEAD, OPTIONS');
          assert.equal(options.headers.get('access-control-allow-methods'), 'GET, QUERY, HEAD, OPTIONS');
          assert.equal(options.headers.get('accept-query'), 'application/json');
        }
        for (let left = 6; left > 1; left--) {
          const { status, headers: told } = await ask(server, '/items', {});
          assert.deepEqual([status, told.get('ratelimit')?.split(';')[1]], [200, `r=${left}`]);
        }
        const found = await samples(server.url);
        assert.equal(
          found.get('sluice_requests_total{route="/items",resource="items",method="QUERY",status="200"}'),
          5,
        );
        assert.equal((await ask(server, '/items/stream', {})).status, 200);
        assert.equal((await ask(server, '/items/stream', {})).status, 429);
      });
  });
