import assert from 'node:assert/strict';
import { PROBLEMS } from '../../src/base/problems.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { jsonOf, problemOf } from '../support/answers.ts';
import { testServer } from '../support/process/server.ts';
import { shared, testsWith } from '../support/tests-with.ts';

const test = testsWith(shared((t) => testServer(t, 'sqlite', 'uws')));
/** Some origins alone may read answers, and nothing may transform them. */
const testLimited = testsWith(
  shared((t) =>
    testServer(t, 'sqlite', 'uws', {
      CORS_ORIGIN: 'https://a.example, https://b.example',
      CACHE_CONTROL: 'public, no-transform',
    }),
  ),
);
const testOpen = testsWith(shared((t) => testServer(t, 'sqlite', 'uws', { CORS_ORIGIN: '*' })));

test('the type of every problem links to its explanation, as a page or as JSON', async (server) => {
  for (const [code, { status, title }] of Object.entries(PROBLEMS)) {
    const page = await server.get(`/problems/${code}`, { accept: 'text/html' });
    assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(page.headers.get('content-security-policy'), "default-src 'none'");
    assert.match(await page.text(), new RegExp(`<h1>${title}</h1>\n<p>.{20,}</p>`));
    const asJson = server.get(`/problems/${code}`, { accept: 'application/json' });
    const json = (await jsonOf(asJson)) as Record<string, unknown>;
    assert.deepEqual([json.code, json.status, json.title], [code, status, title]);
  }
  for (const name of ['nothing', 'constructor', '__proto__', 'toString']) {
    assert.equal((await server.get(`/problems/${name}`)).status, 404, name);
  }
});

test('a path that does not exist is answered with the way to those that do', async (server) => {
  const detailOf = async (path: string) => {
    const { status, detail } = await problemOf(server.get(path));
    assert.equal(status, 404, path);
    return detail;
  };
  const others =
    'The resources are /items, /api/users. GET /resources says what can be asked of them, and /docs shows every path.';
  const gone = (path: string) => `No resource has the path ${path}.`;
  for (const path of ['/nosuch', '/nosuch/', '/nosuch/a/b/'])
    assert.equal(await detailOf(path), `${gone(path)} ${others}`);
  for (const path of ['/docs', '/items', '/items/stream', '/api/users'])
    assert.equal(
      await detailOf(`${path}/`),
      `${gone(`${path}/`)} Leave out the slash at its end: ${path} is there. ${others}`,
    );
});

test('CORS is off unless it is configured', async (server) => {
  const response = await server.get('/items', { origin: 'https://a.example' });
  assert.equal(response.headers.get('access-control-allow-origin'), null);
  assert.equal(response.headers.get('vary'), 'Accept, Accept-Encoding');
});

testLimited('CORS allows the configured origins only', async (server) => {
  const allowed = async (origin: string) => {
    const { headers } = await server.get('/items', { origin });
    return [headers.get('access-control-allow-origin'), headers.get('vary')];
  };
  assert.deepEqual(await allowed('https://b.example'), [
    'https://b.example',
    'Accept, Accept-Encoding, Origin',
  ]);
  assert.deepEqual(await allowed('https://evil.example'), [null, 'Accept, Accept-Encoding, Origin']);
  const problem = await server.get('/items?x=1', { origin: 'https://a.example' });
  assert.equal(
    problem.headers.get('access-control-allow-origin'),
    'https://a.example',
    'errors are readable, too',
  );
});

testOpen('a preflight answers with the methods and headers that the resource accepts', async (server) => {
  const ask = (names: string) =>
    fetch(`${server.url}/items`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://a.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': names,
      },
    });
  assert.equal((await ask(Array.from({ length: 700 }, (_, n) => `x-${n}-names`).join())).status, 204);
  const preflight = await ask('authorization, x-request-id');
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get('access-control-allow-origin'), '*');
  assert.equal(preflight.headers.get('access-control-allow-methods'), 'GET, HEAD, OPTIONS');
  assert.equal(preflight.headers.get('access-control-allow-headers'), '*, Authorization');
  assert.equal(preflight.headers.get('access-control-max-age'), '7200');
});

testOpen('scripts of other origins may read each header that a route documents', async (server) => {
  const stream = await server.get('/items/stream', { origin: 'https://a.example' });
  const exposed = stream.headers.get('access-control-expose-headers')?.split(', ') ?? [];
  assert.ok(stream.headers.has('changes-from'));
  const { paths, components } = (await jsonOf(server.get('/openapi.json'))) as {
    paths: Record<string, Record<string, { responses: Record<string, { headers?: object }> }>>;
    components: { headers: object };
  };
  const operations = Object.values(paths).flatMap((path) => Object.values(path));
  const answers = operations.flatMap(({ responses }) => Object.values(responses));
  const documented = new Set([...answers, components].flatMap(({ headers = {} }) => Object.keys(headers)));
  for (const name of ['Changes-From', 'Repr-Digest', 'Content-Range', 'Content-Disposition', 'ETag'])
    assert.ok(documented.has(name), name);
  // Every script may read the first, and none has a use for the second.
  for (const name of ['Cache-Control', 'X-Content-Type-Options']) documented.delete(name);
  assert.deepEqual(
    [...documented].filter((name) => !exposed.includes(name)),
    [],
  );
});

test('Cache-Control: no-transform of a request keeps its answer uncompressed', async (server) => {
  const coding = async (headers: Record<string, string>) =>
    (await server.get('/openapi.json', { 'accept-encoding': 'br', ...headers })).headers.get(
      'content-encoding',
    );
  assert.equal(await coding({}), 'br');
  assert.equal(await coding({ 'cache-control': 'no-transform' }), null);
});

testLimited('CACHE_CONTROL with no-transform keeps answers uncompressed', async (server) => {
  await server.insert(catalogue(100).map((row) => row.document));
  const { headers } = await server.get('/items', { 'accept-encoding': 'br' });
  assert.equal(headers.get('content-encoding'), null);
});

test('a small answer stays uncompressed unless identity is refused', async (server) => {
  const coding = async (accept: string) =>
    (await server.get('/items', { 'accept-encoding': accept })).headers.get('content-encoding');
  assert.equal(await coding('br'), null);
  assert.equal(await coding('br, identity;q=0'), 'br');
  assert.equal(await coding('gzip, *;q=0'), 'gzip');
});
