import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROBLEMS } from '../../src/problems.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { testServer } from '../support/process/server.ts';

test('the type of every problem links to its explanation, as a page or as JSON', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws');
  for (const [code, { status, title }] of Object.entries(PROBLEMS)) {
    const page = await server.get(`/problems/${code}`, { accept: 'text/html' });
    assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(page.headers.get('content-security-policy'), "default-src 'none'");
    assert.match(await page.text(), new RegExp(`<h1>${title}</h1>\n<p>.{20,}</p>`));
    const json = (await (
      await server.get(`/problems/${code}`, { accept: 'application/json' })
    ).json()) as Record<string, unknown>;
    assert.deepEqual([json.code, json.status, json.title], [code, status, title]);
  }
  for (const name of ['nothing', 'constructor', '__proto__', 'toString']) {
    assert.equal((await server.get(`/problems/${name}`)).status, 404, name);
  }
});

test('a path that does not exist is answered with the way to those that do', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws');
  const detailOf = async (path: string) => {
    const answer = await server.get(path);
    assert.equal(answer.status, 404, path);
    return ((await answer.json()) as { detail: string }).detail;
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

test('CORS is off unless it is configured', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws');
  const response = await server.get('/items', { origin: 'https://a.example' });
  assert.equal(response.headers.get('access-control-allow-origin'), null);
  assert.equal(response.headers.get('vary'), 'Accept, Accept-Encoding');
});

test('CORS allows the configured origins only', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws', {
    CORS_ORIGIN: 'https://a.example, https://b.example',
  });
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

test('a preflight answers with the methods and headers that the resource accepts', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws', { CORS_ORIGIN: '*' });
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

test('scripts of other origins may read each header that a route documents', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws', { CORS_ORIGIN: '*' });
  const stream = await server.get('/items/stream', { origin: 'https://a.example' });
  const exposed = stream.headers.get('access-control-expose-headers')?.split(', ') ?? [];
  assert.ok(stream.headers.has('changes-from'));
  const { paths, components } = (await (await server.get('/openapi.json')).json()) as {
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

test('Cache-Control: no-transform keeps an answer uncompressed', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws', { CACHE_CONTROL: 'public, no-transform' });
  await server.insert(catalogue(100).map((row) => row.document));
  const asked = await server.get('/items/stream', {
    'cache-control': 'no-transform',
    'accept-encoding': 'br',
  });
  assert.equal(asked.headers.get('content-encoding'), null);
  await asked.arrayBuffer();
  const configured = await server.get('/items', { 'accept-encoding': 'br' });
  assert.equal(configured.headers.get('content-encoding'), null);
});

test('a small answer stays uncompressed unless identity is refused', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws');
  const coding = async (accept: string) =>
    (await server.get('/items', { 'accept-encoding': accept })).headers.get('content-encoding');
  assert.equal(await coding('br'), null);
  assert.equal(await coding('br, identity;q=0'), 'br');
  assert.equal(await coding('gzip, *;q=0'), 'gzip');
});
