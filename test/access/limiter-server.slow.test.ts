import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { catalogue } from '../support/resources/catalogue.ts';
import { whyNoUws } from '../support/engine/engines.ts';
import { problemOf } from '../support/answers.ts';
import { keyedServer } from '../support/access/keyed.ts';
import { serverOn, testServer, type EngineName } from '../support/process/server.ts';

const POLICY = /^"default";q=\d+;w=\d+$/;
const LIMIT = /^"default";r=\d+;t=\d+$/;

/** More bytes than the buffers between the server and a client that does not read. */
const LONG = Array.from({ length: 200 }, (_, i) => ({
  _id: i,
  category: 'long',
  price: i,
  text: 'x'.repeat(100_000),
}));

for (const engine of ['uws', 'node'] satisfies EngineName[]) {
  const skip = engine === 'uws' ? (whyNoUws() ?? false) : false;
  describe(`limits behind ${engine}`, { skip }, () => {
    test('every answer has the headers of the limit, whatever its status', async (t) => {
      const server = await testServer(t, 'sqlite', engine, { RATE_LIMIT: '1000/h' });
      await server.insert(catalogue(20).map((row) => row.document));
      const etag = (await server.get('/items')).headers.get('etag') ?? '';
      const asked: [method: string, path: string, headers: Record<string, string>, status: number][] = [
        ['GET', '/items', {}, 200],
        ['HEAD', '/items', {}, 200],
        ['GET', '/items', { 'if-none-match': etag }, 304],
        ['GET', '/items/stream', {}, 200],
        ['HEAD', '/items/stream', {}, 200],
        ['OPTIONS', '/items', {}, 204],
        ['GET', '/items?limit=0', {}, 400],
        ['GET', '/nothing', {}, 404],
        ['POST', '/items', {}, 405],
        ['GET', '/items', { accept: 'text/html' }, 406],
        ['GET', `/items?category=${'x'.repeat(15_000)}`, {}, 414],
      ];
      for (const [i, [method, path, headers, status]] of asked.entries()) {
        const response = await fetch(server.url + path, { method, headers });
        await response.arrayBuffer();
        assert.equal(response.status, status, `${method} ${path.slice(0, 40)}`);
        assert.equal(response.headers.get('ratelimit-policy'), '"default";q=1000;w=3600');
        assert.match(
          response.headers.get('ratelimit') ?? '',
          new RegExp(`^"default";r=${998 - i};t=3[56]\\d\\d$`),
        );
      }
    });

    test('a client that leaves a stream can open another one at once', async (t) => {
      const server = await testServer(t, 'sqlite', engine, { STREAM_LIMIT: '2' });
      await server.insert(LONG);
      for (let round = 0; round < 2; round++) {
        const open = [await openStream(server.url), await openStream(server.url)];
        const refused: Response = await server.get('/items/stream');
        assert.equal(refused.headers.get('retry-after'), '5');
        assert.match(refused.headers.get('ratelimit') ?? '', LIMIT);
        const { status, code, detail } = await problemOf(refused);
        assert.deepEqual([status, code], [429, 'too-many-streams']);
        assert.match(detail, / 2 open streams, the most that STREAM_LIMIT allows/);
        assert.equal((await server.get('/items?limit=1')).status, 200, 'pages are still served');
        for (const socket of open) socket.destroy();
      }
    });
  });
}

test('a client above the limit gets a 429 that names the setting, whatever its headers claim', async (t) => {
  const server = await serverOn(t, { RATE_LIMIT: '5/h' });
  for (let i = 0; i < 5; i++) await (await server.get('/items')).arrayBuffer();
  const ways: Record<string, string>[] = [
    {},
    { 'x-forwarded-for': '198.51.100.1' },
    { 'X-FORWARDED-FOR': '198.51.100.2, 198.51.100.3' },
    { forwarded: 'for=198.51.100.4', 'x-real-ip': '198.51.100.4', 'true-client-ip': '198.51.100.4' },
    { authorization: 'Bearer something' },
    { host: 'elsewhere' },
    { 'user-agent': 'another' },
  ];
  for (const headers of ways) {
    const response = await server.get('/items', headers);
    assert.equal(response.status, 429, JSON.stringify(headers));
    assert.match(response.headers.get('ratelimit') ?? '', /^"default";r=0;t=\d+$/);
    assert.match(response.headers.get('ratelimit-policy') ?? '', POLICY);
    const reset = /t=(\d+)$/.exec(response.headers.get('ratelimit') ?? '')?.[1];
    assert.equal(response.headers.get('retry-after'), reset);
    const { code, detail } = await problemOf(response);
    assert.equal(code, 'rate-limited');
    assert.match(detail, /^RATE_LIMIT allows a client 5 requests in 3600 s\. Try again in \d+ s\.$/);
  }
  assert.equal((await fetch(`${server.url}/items`, { method: 'HEAD' })).status, 429);
  assert.equal((await server.get('/livez')).status, 200, 'probes are never limited');
});

test('a process that carries its maximum of streams answers 503', async (t) => {
  const server = await serverOn(t, { STREAM_LIMIT: 'off', MAX_STREAMS: '1' });
  await server.insert(LONG);
  const open = await openStream(server.url);
  const refused: Response = await server.get('/items/stream');
  assert.equal(refused.headers.get('retry-after'), '5');
  const { status, code, detail } = await problemOf(refused);
  assert.deepEqual([status, code], [503, 'overloaded']);
  assert.match(detail, / 1 open streams, the most that MAX_STREAMS allows/);
  open.destroy();
});

test('with keys configured every request needs one, but for what is open', async (t) => {
  const server = await keyedServer(t, 'sqlite', [{ name: 'alice' }], []);
  const given = (answer: Response) => answer.headers.get('www-authenticate');
  for (const path of ['/items', '/items/stream', '/api/users', '/nothing', '/items/1']) {
    const missing = await server.get(path);
    assert.equal(given(missing), 'Bearer realm="sluice"');
    assert.match(missing.headers.get('ratelimit') ?? '', LIMIT);
    const wrong = await server.as('nobody', path);
    assert.equal(given(wrong), 'Bearer realm="sluice", error="invalid_token"');
    for (const answer of [missing, wrong]) {
      const { status, code } = await problemOf(answer);
      assert.deepEqual([status, code], [401, 'unauthorized'], path);
    }
  }
  const preflight = { method: 'OPTIONS', headers: { 'access-control-request-method': 'GET' } };
  const statusOf = async (path: string, options?: RequestInit) =>
    (await fetch(server.url + path, options)).status;
  for (const path of ['/problems/unauthorized', '/livez']) assert.equal(await statusOf(path), 200, path);
  assert.equal(await statusOf('/items', preflight), 204);
  for (const options of [{ method: 'OPTIONS' }, { ...preflight, method: 'GET' }])
    assert.equal(await statusOf('/items', options), 401, options.method);
  assert.equal((await server.as('alice', '/items')).status, 200);
});

test('the server serves while its Redis is unavailable', async (t) => {
  const server = await serverOn(t, { REDIS_URL: 'redis://127.0.0.1:1', RATE_LIMIT: '2/h' });
  const seen: number[] = [];
  for (let i = 0; i < 3; i++) seen.push((await server.get('/items')).status);
  assert.deepEqual(seen, [200, 200, 429]);
});

/** A running stream that is not read. The server may need a few turns to notice that an earlier one was left. */
async function openStream(url: string): Promise<Socket> {
  for (;;) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.on('error', () => socket.destroy());
    socket.write('GET /items/stream HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(socket, 'readable');
    const begin = String(socket.read(12));
    if (begin === 'HTTP/1.1 200') return socket;
    socket.destroy();
    assert.equal(begin, 'HTTP/1.1 429');
  }
}
