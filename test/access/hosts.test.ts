import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RawClient, rawExchange } from '../support/engine/raw.ts';
import { keyedServer } from '../support/access/keyed.ts';
import { serverOn, type EngineName } from '../support/process/server.ts';

/** Values of Host, and whether a server without keys answers to them. It has HOST and ALLOWED_HOSTS of their own names. */
const HOSTS: readonly (readonly [host: string, isServed: boolean])[] = [
  ...['127.0.0.1', '127.0.0.1:3000', '127.0.0.1:', '192.0.2.7', '0.0.0.0:80', '[::1]', '[::1]:3000'].map(
    served,
  ),
  ...['[2001:DB8::5]', '[::ffff:127.0.0.1]:1'].map(served),
  ...[
    'localhost',
    'localhost:3000',
    'LocalHost',
    'localhost.',
    'localhost.:80',
    'a.localhost',
    'a.b.LOCALHOST.',
  ].map(served),
  ...['sluice', 'SLUICE:80', 'sluice.', 'rows.shop.example', 'Rows.Shop.Example.:443'].map(served),
  ...['evil.example', 'evil.example:3000', 'evil.example.', '', ':80', '.', 'example', 'shop.example'].map(
    refused,
  ),
  ...['a.sluice', 'sluice.example', 'sluice..', 'notlocalhost', 'localhost.evil.example', 'xlocalhost.'].map(
    refused,
  ),
  ...['127.0.0.1.evil.example', '127.0.0.1.nip.io', '127.1', '2130706433', '0x7f.0.0.1', '127.0.0.1.5'].map(
    refused,
  ),
  ...['rows.shop.example.evil.example', 'rows-shop.example', 'sluice%2e', '127.0.0.1%00'].map(refused),
];

function served(host: string): readonly [string, boolean] {
  return [host, true];
}

function refused(host: string): readonly [string, boolean] {
  return [host, false];
}

const SETTINGS = { ALLOWED_HOSTS: 'sluice, Rows.shop.example', CORS_ORIGIN: '*' };

for (const engine of ['uws', 'node'] satisfies EngineName[]) {
  test(`${engine}: a server without keys answers to addresses, localhost and its own names, on every path`, async (t) => {
    const server = await serverOn(t, { ...SETTINGS, HTTP_ENGINE: engine });
    await server.insert([{ _id: 'row', category: 'x', price: 1 }]);
    const port = Number(new URL(server.url).port);
    const client = await RawClient.connect(t, port);
    /** The status and the body of an answer on the same connection. */
    const ask = async (method: string, path: string, host: string) => {
      client.text = '';
      client.send(`${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nOrigin: http://${host}\r\n\r\n`);
      const came = await client.until((all) => {
        const [head = '', ...rest] = all.split('\r\n\r\n');
        if (!head.startsWith('HTTP') || rest.length === 0) return false;
        if (method === 'HEAD') return true;
        const length = /^content-length: (\d+)/im.exec(head)?.[1];
        return length === undefined
          ? head.includes('204') || all.endsWith('0\r\n\r\n')
          : rest.join('').length >= Number(length);
      });
      return { status: Number(came.slice(9, 12)), came };
    };
    for (const [host, isServed] of HOSTS) {
      const { status, came } = await ask('GET', '/items/row', host);
      assert.equal(status, isServed ? 200 : 421, `Host: ${host}`);
      if (isServed) continue;
      assert.match(came, /"code":"misdirected-request"/);
      assert.match(came, /ALLOWED_HOSTS/);
      assert.doesNotMatch(came, /sluice|shop/i, 'the allowed names are not told');
    }
    const { paths } = (await (await server.get('/openapi.json')).json()) as {
      paths: Record<string, Record<string, unknown>>;
    };
    let asked = 0;
    for (const [path, methods] of Object.entries(paths)) {
      for (const method of [...Object.keys(methods), 'head', 'options']) {
        const { status } = await ask(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'x'), 'evil.example');
        assert.equal(status, 421, `${method} ${path}`);
        asked++;
      }
    }
    assert.ok(asked > 60, `${asked} requests`);
    assert.equal((await ask('GET', '/none', 'evil.example')).status, 421);
  });

  test(`${engine}: no other form of a request hides the name of its host`, async (t) => {
    const server = await serverOn(t, { HTTP_ENGINE: engine });
    const port = Number(new URL(server.url).port);
    const end = 'Connection: close\r\n\r\n';
    for (const text of [
      `GET /items HTTP/1.0\r\nHost: evil.example\r\n${end}`,
      `GET /items HTTP/1.0\r\n${end}`,
      `GET /items HTTP/1.1\r\n${end}`,
      `GET /items HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\n${end}`,
      `GET http://localhost/items HTTP/1.1\r\nHost: evil.example\r\n${end}`,
      `GET http://evil.example/items HTTP/1.1\r\nHost: localhost\r\n${end}`,
      `GET /items HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n${end}`,
      `GET /items HTTP/1.1\r\nHost: localhost, evil.example\r\n${end}`,
      `GET /items HTTP/1.1\r\nHost: evil.example@localhost\r\n${end}`,
    ])
      assert.doesNotMatch(await rawExchange(t, port, text), /^HTTP\/1\.1 [23]/, JSON.stringify(text));
  });
}

test('a server with keys answers to any name, and asks for a key', async (t) => {
  const server = await keyedServer(t, 'sqlite', [{ name: 'alice' }], []);
  const port = Number(new URL(server.url).port);
  for (const [host, status] of [
    ['evil.example', 401],
    ['localhost', 401],
  ] as const) {
    const answer = await rawExchange(
      t,
      port,
      `GET /items HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
    assert.equal(Number(answer.slice(9, 12)), status, host);
  }
});
