import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeCursor } from '../../src/resources/token/cursor.ts';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { problemOf } from '../support/answers.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { testServer, type EngineName } from '../support/process/server.ts';

const HUGE = '9'.repeat(40);
const cursorById = encodeCursor('items', { sort: '_id', direction: 1 }, makeBookmark({ _id: 5 }));

/** A query of GET /items -> the code and parameter of the expected 400. */
const PAGE_CASES: [query: string, code: string, parameter: string][] = [
  ...['limit', 'offset', 'page'].flatMap((name): [string, string, string][] =>
    ['', '-1', HUGE, '1.5', 'ten', '0x10', '1e3', ' 1', '+1', '007', '%20', 'null'].map((value) => [
      `${name}=${value}`,
      'invalid-parameter',
      name,
    ]),
  ),
  ['limit', 'invalid-parameter', 'limit'],
  ['limit=0', 'invalid-parameter', 'limit'],
  ['limit=1001', 'invalid-parameter', 'limit'],
  ['page=0', 'invalid-parameter', 'page'],
  ['offset=1000001', 'offset-too-deep', 'offset'],
  ['page=1002&limit=1000', 'offset-too-deep', 'page'],
  ['offset=9007199254740991', 'offset-too-deep', 'offset'],
  ['page=9007199254740991&limit=1000', 'offset-too-deep', 'page'],
  ['limit=1&limit=2', 'duplicate-parameter', 'limit'],
  ['limit=1&%6cimit=2', 'duplicate-parameter', 'limit'],
  ['category=a&category=a', 'duplicate-parameter', 'category'],
  ['offset=1&page=2', 'conflicting-parameters', 'page'],
  [`offset=1&cursor=${cursorById}`, 'conflicting-parameters', 'cursor'],
  [`page=1&cursor=${cursorById}`, 'conflicting-parameters', 'cursor'],
  ['category=', 'invalid-parameter', 'category'],
  [`category=${'x'.repeat(257)}`, 'invalid-parameter', 'category'],
  ['category=%', 'invalid-parameter', 'category'],
  ['category=%zz', 'invalid-parameter', 'category'],
  ['category=%ff', 'invalid-parameter', 'category'],
  ['category=%c3%28', 'invalid-parameter', 'category'],
  ['category=%ed%a0%80', 'invalid-parameter', 'category'],
  ['category[$ne]=x', 'unknown-parameter', 'category[$ne]'],
  ['category[$ne]', 'unknown-parameter', 'category[$ne]'],
  ['__proto__=1', 'unknown-parameter', '__proto__'],
  ['constructor=1', 'unknown-parameter', 'constructor'],
  ['Limit=1', 'unknown-parameter', 'Limit'],
  ['=1', 'unknown-parameter', ''],
  ['%zz=1', 'invalid-parameter', '%zz'],
  ['sort=', 'invalid-parameter', 'sort'],
  ['sort=price', 'invalid-parameter', 'sort'],
  ['sort=PRICE_ASC', 'invalid-parameter', 'sort'],
  ['sort=__proto__', 'invalid-parameter', 'sort'],
  ...['min_price', 'max_price'].flatMap((name): [string, string, string][] =>
    ['', 'NaN', 'Infinity', '1e9999', 'ten', '0x1', '1,5', '.5', '5.', '--1'].map((value) => [
      `${name}=${value}`,
      'invalid-parameter',
      name,
    ]),
  ),
  ['min_price=1&sort=id_asc', 'conflicting-parameters', 'sort'],
  ['max_price=1&sort=id_desc', 'conflicting-parameters', 'sort'],
  ['cursor=', 'invalid-parameter', 'cursor'],
  ['cursor=abc', 'invalid-cursor', 'cursor'],
  ['cursor=%00', 'invalid-cursor', 'cursor'],
  [`cursor=${cursorById}=`, 'invalid-cursor', 'cursor'],
  [`cursor=${cursorById.slice(0, -1)}`, 'invalid-cursor', 'cursor'],
  [`cursor=${'A'.repeat(12_289)}`, 'invalid-parameter', 'cursor'],
  [`cursor=${cursorById}&sort=id_desc`, 'cursor-mismatch', 'cursor'],
  [`cursor=${cursorById}&category=a`, 'cursor-mismatch', 'cursor'],
  [`cursor=${cursorById}&sort=price_asc`, 'cursor-mismatch', 'cursor'],
  ['format=json', 'unknown-parameter', 'format'],
  ['fields=', 'invalid-parameter', 'fields'],
  ['fields=a,', 'invalid-parameter', 'fields'],
  ['fields=a,b,a', 'invalid-parameter', 'fields'],
  [`fields=${'x'.repeat(257)}`, 'invalid-parameter', 'fields'],
  [`fields=${Array.from({ length: 101 }, (_, i) => i).join()}`, 'invalid-parameter', 'fields'],
];

const STREAM_CASES: [query: string, code: string, parameter: string][] = [
  ['offset=1', 'unknown-parameter', 'offset'],
  ['page=1', 'unknown-parameter', 'page'],
  ['limit=0', 'invalid-parameter', 'limit'],
  ['limit=-5', 'invalid-parameter', 'limit'],
  ['format=xml', 'invalid-parameter', 'format'],
  ['format=', 'invalid-parameter', 'format'],
  ['format=json&format=json', 'duplicate-parameter', 'format'],
  ['cursor=abc', 'invalid-cursor', 'cursor'],
  [`cursor=${cursorById}&sort=price_asc`, 'cursor-mismatch', 'cursor'],
  ['min_price=1&sort=id_asc', 'conflicting-parameters', 'sort'],
];

const OTHER_CASES: readonly (readonly [
  method: string,
  path: string,
  headers: Record<string, string>,
  status: number,
  code: string,
])[] = [
  ['GET', '/nothing', {}, 404, 'not-found'],
  ['GET', '/items/', {}, 404, 'not-found'],
  ['GET', '/items/a/b', {}, 404, 'not-found'],
  ['GET', '/items/%zz', {}, 400, 'invalid-url'],
  ['GET', '/items/%ff', {}, 400, 'invalid-url'],
  ['GET', '/items/none?x=1', {}, 400, 'unknown-parameter'],
  ['POST', '/items', {}, 405, 'method-not-allowed'],
  ['DELETE', '/items/stream', {}, 405, 'method-not-allowed'],
  ['GET', '/items', { accept: 'text/html' }, 406, 'not-acceptable'],
  ['GET', '/items/stream', { accept: 'image/png' }, 406, 'not-acceptable'],
  ['GET', '/items', { 'accept-encoding': 'identity;q=0, compress' }, 406, 'not-acceptable'],
  ['GET', `/items?category=${'x'.repeat(15_000)}`, {}, 414, 'uri-too-long'],
];

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`behind ${engine}, bad input is refused with a problem that names what is wrong`, async (t) => {
    const server = await testServer(t, 'sqlite', engine);
    await server.insert(catalogue(20).map((row) => row.document));
    for (const [path, query, code, parameter] of [
      ...PAGE_CASES.map((entry) => ['/items', ...entry] as const),
      ...STREAM_CASES.map((entry) => ['/items/stream', ...entry] as const),
    ]) {
      const response = await server.get(`${path}?${query}`);
      const problem = (await response.json()) as Record<string, unknown>;
      assert.equal(response.headers.get('content-type'), 'application/problem+json');
      assert.deepEqual(
        [problem.code, problem.parameter, problem.status, problem.instance, problem.type],
        [code, parameter, 400, path, `/problems/${code}`],
        query,
      );
      assert.equal(problem.requestId, response.headers.get('x-request-id'));
      assert.ok(String(problem.detail).length > 10);
    }
    for (const [method, path, headers, status, code] of OTHER_CASES) {
      const response = await fetch(server.url + path, { method, headers });
      const problem = (await response.json()) as { code: string };
      assert.deepEqual([response.status, problem.code], [status, code], `${method} ${path.slice(0, 60)}`);
      if (status === 405) assert.equal(response.headers.get('allow'), 'GET, HEAD, OPTIONS');
    }
    const options = await fetch(`${server.url}/items`, { method: 'OPTIONS' });
    assert.deepEqual([options.status, options.headers.get('allow')], [204, 'GET, HEAD, OPTIONS']);
    assert.equal((await server.get('/items?page=1000&limit=1000')).status, 200, 'the deepest page');
    const id = async (given: string) =>
      (await server.get('/items', { 'x-request-id': given })).headers.get('x-request-id');
    assert.equal(await id('trace-1.2_3'), 'trace-1.2_3', 'a valid request id is kept');
    assert.match((await id('a b')) ?? '', /^[0-9a-f-]{36}$/);
    assert.match((await id('x'.repeat(200))) ?? '', /^[0-9a-f-]{36}$/);
  });

test('an error for a limit names the allowed range', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws', { MAX_LIMIT: '200' });
  const { detail } = await problemOf(server.get('/items?limit=201'));
  assert.equal(detail, 'limit must be an integer from 1 to 200; got "201".');
});
