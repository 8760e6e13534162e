import assert from 'node:assert/strict';
import { test } from 'node:test';
import { begun, problemOf } from '../support/answers.ts';
import { keyedServer } from '../support/access/keyed.ts';
import { awaited, order } from '../support/exports/exports.ts';
import { serverOn } from '../support/process/server.ts';

test('a client with a key is its key from any address, and a client without a key is its address', async (t) => {
  const keys = [{ name: 'alice' }, { name: 'bob' }];
  const settings = { RATE_LIMIT: '3/h', TRUSTED_PROXIES: 'loopback' };
  const server = await keyedServer(t, 'sqlite', keys, [], settings);
  const decide = async (name: string | null, from: string) => {
    const headers = { 'x-forwarded-for': from };
    const answer: Response = await (name === null
      ? server.get('/items', headers)
      : server.as(name, '/items', { headers }));
    const { code = 'in' } = (await answer.json()) as { readonly code?: string };
    return `${code} ${/r=\d/.exec(answer.headers.get('ratelimit') ?? '')?.[0]}`;
  };
  const one = '192.0.2.1';
  const other = '192.0.2.2';
  assert.equal(await decide('alice', one), 'in r=2');
  assert.equal(await decide('alice', other), 'in r=1');
  assert.equal(await decide('bob', one), 'in r=2');
  assert.equal(await decide('mallory', one), 'unauthorized r=2');
  assert.equal(await decide('carol', one), 'unauthorized r=1');
  assert.equal(await decide(null, one), 'unauthorized r=0');
  assert.equal(await decide('eve', one), 'rate-limited r=0', 'wrong keys are rate limited, too');
  assert.equal(await decide('alice', one), 'in r=0', 'a client with a key is not affected');
  assert.equal(await decide(null, '2001:db8::1'), 'unauthorized r=2');
  assert.equal(await decide(null, '9.9.9.9, [2001:0DB8::5]:80'), 'unauthorized r=1', 'of one network');
  assert.equal(await decide(null, '2001:db8:0:1::1'), 'unauthorized r=2');
});

test('a stream or a download gives its slot back, however it ends', async (t) => {
  const server = await serverOn(t, { MONGODB_URI: '', STREAM_LIMIT: '1' });
  await server.insert([1, 1.5].map((price) => ({ _id: price, category: 'x', price })));
  const { file } = await awaited(server.url, (await order(server.url, {})).id);
  const path = file?.url ?? '';
  const asked: [method: string, path: string, headers: Record<string, string>, status: number][] = [
    ['GET', '/items/stream', {}, 200],
    ['HEAD', '/items/stream', {}, 200],
    ['GET', '/items/stream', { prefer: 'respond-async' }, 202],
    ['GET', '/items/stream?limit=0', {}, 400],
    ['GET', path, {}, 200],
    ['HEAD', path, {}, 200],
    ['GET', path, { range: 'bytes=2-4' }, 206],
    ['GET', path, { 'if-none-match': `"${file?.sha256}"` }, 304],
    ['GET', path, { 'if-none-match': 'a' }, 400],
    ['GET', path, { 'if-match': '"b"' }, 412],
    ['GET', path, { range: 'bytes=9999-' }, 416],
    ['GET', '/exports/none/file', {}, 404],
  ];
  for (const [method, url, headers, status] of asked)
    for (let times = 0; times < 2; times++) {
      const answer = await fetch(server.url + url, { method, headers });
      await answer.arrayBuffer();
      assert.equal(answer.status, status, `${method} ${url} ${JSON.stringify(headers)}`);
    }
  const cut = '/items/stream?format=arrow&schema=strict&columns=id:double,price:integer';
  for (let times = 0; times < 2; times++)
    await assert.rejects(
      server.get(cut).then((answer) => answer.arrayBuffer()),
      TypeError,
    );
  assert.equal((await server.get('/items/stream')).status, 200);
});

test('slots are of the clients that rates are of, and a key can have a limit of its own', async (t) => {
  const rows = Array.from({ length: 150 }, (_, n) => ({ _id: n, text: 'x'.repeat(100_000) }));
  const keys = [{ name: 'alice' }, { name: 'bob', streams: 2 }];
  const orders = { name: 'orders', rows, indexes: [] };
  const server = await keyedServer(t, 'sqlite', keys, [orders], { STREAM_LIMIT: '1' });
  // Compressed, they would be at their end before another is asked for.
  const stream = (name: string) =>
    server.as(name, '/orders/stream', { headers: { 'accept-encoding': 'identity' } });
  for (const [name, allowed] of [
    ['alice', / 1 open streams, the most that STREAM_LIMIT allows/],
    ['bob', / 2 open streams, the most that its key allows/],
  ] as const) {
    const rests: (() => Promise<number>)[] = [];
    for (let n = name === 'bob' ? 2 : 1; n > 0; n--) rests.push(await begun(stream(name)));
    const { code, detail } = await problemOf(stream(name));
    assert.equal(code, 'too-many-streams');
    assert.match(detail, allowed);
    for (const rest of rests) assert.ok((await rest()) > 10_000_000);
  }
});
