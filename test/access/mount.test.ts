import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMountReader } from '../../src/access/mount.ts';
import { jsonOf } from '../support/answers.ts';
import { awaited } from '../support/exports/exports.ts';
import { serverOn, type EngineName } from '../support/process/server.ts';

const UNDER = { 'x-forwarded-prefix': '/data/v1' };

/** What a reader that trusts 10.0.0.1 makes of a header. */
function mountOf(prefix: string | undefined, address = '10.0.0.1') {
  const warnings: string[] = [];
  const read = createMountReader({
    trusts: (peer) => peer === '10.0.0.1',
    onWarning: (message) => warnings.push(message),
  });
  const asked = { address, headers: { 'x-forwarded-prefix': prefix } };
  return [read(asked), read(asked)].map((mount) => ({ mount, warnings: warnings.length }))[1];
}

test('the prefix of a trusted proxy is a path and nothing else', () => {
  for (const [prefix, mount] of [
    ['/data/v1', '/data/v1'],
    ['/data/v1/', '/data/v1'],
    ['/a-b_c.d~e', '/a-b_c.d~e'],
    ['/caf%C3%A9', '/caf%C3%A9'],
    ['/', ''],
    ['', ''],
    [undefined, ''],
  ] as const) {
    assert.deepEqual(mountOf(prefix), { mount, warnings: 0 }, prefix);
    assert.equal(mountOf(prefix, '::ffff:10.0.0.1')?.mount, mount, 'as IPv6 shows the peer');
  }
  const refused =
    '//evil.example,/\\evil.example,https://evil.example,data,/a//b,/a/../b,/a/.,/%2e%2E/b,/a?b,/a#b,/a b,/a"b,/a<b>,/a%zz'.split(
      ',',
    );
  for (const prefix of [...refused, '/a, /b', '/a\r\nx: y', '/a\u0000', '/\u00e9', `/${'x'.repeat(256)}`])
    assert.deepEqual(mountOf(prefix), { mount: '', warnings: 1 }, JSON.stringify(prefix));
  assert.deepEqual(mountOf('/data', '10.0.0.2'), { mount: '', warnings: 1 }, 'from somebody else');
  assert.deepEqual(mountOf('/data', ''), { mount: '', warnings: 1 }, 'from an unknown peer');
});

for (const engine of ['uws', 'node'] as const satisfies readonly EngineName[])
  test(`all references of answers are under the prefix of the proxy, behind ${engine}`, async (t) => {
    const server = await serverOn(t, { HTTP_ENGINE: engine, TRUSTED_PROXIES: 'loopback' });
    await server.insert([1, 2, 3].map((price) => ({ _id: `row-${price}`, category: 'a', price })));
    const ask = (path: string, options: RequestInit = {}) =>
      fetch(server.url + path, { ...options, headers: { ...UNDER, ...(options.headers as object) } });
    const body = (path: string) => jsonOf(ask(path)) as Promise<Record<string, unknown>>;

    const page = await ask('/items?limit=1');
    const links = page.headers.get('link') ?? '';
    assert.match(links, /^<\/data\/v1\/items\?limit=1>; rel="first", <\/data\/v1\/items\?limit=1&cursor=/);
    assert.match(page.headers.get('vary') ?? '', /(^|, )X-Forwarded-Prefix$/);
    await page.text();

    const found = JSON.stringify([
      await body('/resources'),
      await body('/items/partitions?n=2'),
      await body('/clients'),
    ]);
    const paths = [...found.matchAll(/"(\/[^"]*)"/g)].map(([, path = '']) => path);
    assert.ok(paths.length > 8, found);
    for (const path of paths) {
      assert.ok(path.startsWith('/data/v1/'), path);
      const answer = await ask(path.slice('/data/v1'.length), { method: 'HEAD' });
      assert.ok(answer.ok, `${path}: ${answer.status}`);
    }
    const { servers } = await body('/openapi.json');
    assert.deepEqual(servers, [{ url: '/data/v1' }]);

    const missing = (await (await ask('/nothing?x=1')).json()) as Record<string, string>;
    assert.equal(missing.type, '/data/v1/problems/not-found');
    assert.equal(missing.instance, '/data/v1/nothing');
    assert.match(missing.detail ?? '', /GET \/data\/v1\/resources/);

    const json = { 'content-type': 'application/json' };
    const user = await ask('/api/users/ada', {
      method: 'PUT',
      headers: json,
      body: '{"name":"Ada","email":"ada@example.com"}',
    });
    assert.equal(user.status, 201, await user.text());
    assert.equal(user.headers.get('location'), '/data/v1/api/users/ada');
    assert.equal(user.headers.get('content-location'), '/data/v1/api/users/ada');

    const order = '{"resource":"items","format":"ndjson"}';
    const ordered = await ask('/exports', { method: 'POST', headers: json, body: order });
    const { id } = (await ordered.json()) as { id: string };
    assert.equal(ordered.headers.get('location'), `/data/v1/exports/${id}`);
    await awaited(server.url, id);
    const { file } = await body(`/exports/${id}`);
    assert.equal((file as { url: string }).url, `/data/v1/exports/${id}/file`);

    // Not from the cache of the document under the prefix.
    const plain = (await jsonOf(server.get('/openapi.json'))) as Record<string, unknown>;
    assert.deepEqual(plain.servers, [{ url: '/' }]);
    const bare = await server.get('/items?limit=1');
    assert.match(bare.headers.get('link') ?? '', /^<\/items\?/);
    assert.doesNotMatch(bare.headers.get('vary') ?? '', /prefix/i);
    const evil = await server.get('/nothing', { 'x-forwarded-prefix': '//evil.example' });
    assert.doesNotMatch(await evil.text(), /evil/);
  });

test('without TRUSTED_PROXIES nobody moves the links', async (t) => {
  const server = await serverOn(t, {});
  const answer = await server.get('/nothing', UNDER);
  assert.doesNotMatch(await answer.text(), /data/);
  assert.doesNotMatch(answer.headers.get('vary') ?? '', /prefix/i);
});
