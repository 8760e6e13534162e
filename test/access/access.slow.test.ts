import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '../../src/settings/config.ts';
import { Faults } from '../../src/base/errors.ts';
import type { Route } from '../../src/http/route.ts';
import type { ServerOptions } from '../../src/server/main.ts';
import { begun, problemOf } from '../support/answers.ts';
import { post } from '../support/exports/exports.ts';
import { bearer, keyedServer, keysText, type KeyGiven, type Rows } from '../support/access/keyed.ts';
import { auditOf, logTo } from '../support/access/log-lines.ts';
import { temporaryFolder } from '../support/directory.ts';

const ROW = { status: 'new', note: 'x'.repeat(50) };
const RESOURCES: readonly Rows[] = ['orders', 'secrets'].map((name) => ({
  name,
  rows: Array.from({ length: 50 }, (_, n) => ({ _id: `${name}-${n}`, ...ROW })),
  indexes: [['status']],
}));

/** The status and the body of an answer, without what differs in every answer. */
async function bare(response: Response): Promise<string> {
  const text = (await response.text()).replaceAll(response.headers.get('x-request-id') ?? '-', 'ID');
  const { pathname } = new URL(response.url);
  const headers = ['allow', 'content-type', 'cache-control', 'vary', 'etag', 'www-authenticate'];
  const shown = headers.map((name) => `${name}: ${response.headers.get(name)}`);
  return [response.status, ...shown, text.replaceAll(pathname, 'PATH')].join('\n');
}

const ORDERS: KeyGiven = { name: 'shop', resources: ['orders'] };

test('a resource that a key does not open gets the answer of a missing one, by every method and path', async (t) => {
  const server = await keyedServer(t, 'sqlite', [ORDERS, { name: 'all' }], RESOURCES);
  for (const rest of ['', '/stream', '/changes', '/partitions', '/values?field=status', '/secrets-1'])
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST', 'DELETE']) {
      const secret = await bare(await server.as('shop', `/secrets${rest}`, { method }));
      const none = await bare(await server.as('shop', `/nothing${rest}`, { method }));
      assert.equal(secret, none, `${method} /secrets${rest}`);
      assert.match(secret, /^404/);
    }
  for (const path of ['/items', '/items/stream', '/items/1', '/api/users', '/api/users/ada'])
    assert.equal((await server.as('shop', path)).status, 404, path);
  assert.equal((await server.as('shop', '/orders')).status, 200);
  assert.equal((await server.as('all', '/secrets')).status, 200);
});

test('no list and no message names a resource that the key does not open', async (t) => {
  const server = await keyedServer(t, 'sqlite', [ORDERS, { name: 'all' }], RESOURCES);
  const texts = async (name: string) => {
    const answers = await Promise.all([
      server.as(name, '/resources'),
      server.as(name, '/openapi.json'),
      post(server.url, { resource: 'nothing' }, bearer(name)),
      server.as(name, '/nothing'),
      post(server.url, { resource: 'secrets', sort: 'x' }, bearer(name)),
    ]);
    return Promise.all(answers.map((answer) => answer.text()));
  };
  for (const text of await texts('shop')) {
    assert.doesNotMatch(text.replaceAll(/got \\*"secrets\\*"/g, ''), /secrets/);
    assert.match(text, /orders/);
  }
  for (const text of (await texts('all')).slice(0, 4)) assert.match(text, /secrets/);
  const detailOf = async (path: string) =>
    (await problemOf(server.as('shop', path))).detail.replaceAll(path.replace(/\/$/, ''), '');
  assert.equal(await detailOf('/secrets/'), await detailOf('/nothing/'));
  assert.match(await detailOf('/orders/'), /Leave out the slash at its end/);
  assert.match(await (await fetch(`${server.url}/nothing`)).text(), /unauthorized/);
  const anonymous = await (await fetch(`${server.url}/openapi.json`)).text();
  assert.doesNotMatch(anonymous, /secrets|\/orders|"\/items/, 'the names of resources are for keys');
  assert.match(anonymous, /"\/api\/users/);
});

test('a preflight, which has no key, reveals nothing about declared resources', async (t) => {
  const server = await keyedServer(t, 'sqlite', [ORDERS], RESOURCES, { CORS_ORIGIN: '*' });
  const headers = { 'access-control-request-method': 'GET', origin: 'https://a.example' };
  const ask = (path: string) => fetch(server.url + path, { method: 'OPTIONS', headers }).then(bare);
  const none = await ask('/nothing');
  assert.match(none, /^204/);
  for (const path of ['/secrets', '/orders', '/orders/stream', '/items', '/items/stream', '/nothing/at/all'])
    assert.equal(await ask(path), none, path);
});

test('a key without a right gets 403 that names it, and every keyed route but a cut names a right', async (t) => {
  const rights: readonly (readonly [method: string, path: string, right: string])[] = [
    ['GET', '/orders', 'read'],
    ['GET', '/orders/orders-1', 'read'],
    ['GET', '/orders/values?field=status', 'read'],
    ['GET', '/orders/stream', 'stream'],
    ['GET', '/orders/partitions', 'stream'],
    ['GET', '/orders/changes', 'changes'],
    ['GET', '/items', 'read'],
    ['GET', '/items/stream', 'stream'],
    ['GET', '/items/changes', 'changes'],
    ['GET', '/api/users', 'read'],
    ['POST', '/api/users', 'users:write'],
    ['PUT', '/api/users/ada', 'users:write'],
    ['PATCH', '/api/users/ada', 'users:write'],
    ['DELETE', '/api/users/ada', 'users:write'],
    ['GET', '/exports', 'export'],
    ['POST', '/exports', 'export'],
    ['GET', '/exports/1', 'export'],
    ['DELETE', '/exports/1', 'export'],
    ['GET', '/exports/1/file', 'export'],
    ['GET', '/metrics', 'metrics'],
    ['GET', '/metrics/streams', 'metrics'],
  ];
  let routes: readonly Route[] = [];
  const keys = [{ name: 'none', actions: [] }, { name: 'all' }];
  const tap: ServerOptions['tap'] = (serve, all) => ((routes = all()), serve);
  const server = await keyedServer(t, 'sqlite', keys, RESOURCES, {}, { tap });
  const keyed = routes.filter(({ access }) => access === 'keyed');
  const unnamed = keyed.filter(({ right, resource }) => right === undefined || (resource && right === 'any'));
  assert.deepEqual([keyed.length > 0, unnamed.map(({ id }) => id)], [true, ['cutStream']]);
  for (const [method, path, right] of rights) {
    const { status, code, detail } = await problemOf(server.as('none', path, { method }));
    assert.deepEqual([status, code], [403, 'forbidden'], `${method} ${path}`);
    assert.match(detail, new RegExp(`the right ${right}\\b`), `${method} ${path}`);
    const whole = await server.as('all', path, { method });
    await whole.body?.cancel();
    assert.notEqual(whole.status, 403, `${method} ${path}`);
  }
  await server.rewrite([{ name: 'none', actions: ['stream'] }]);
  const follow = await server.as('none', '/orders/stream?follow=true');
  assert.match(await follow.text(), /the right changes for orders/);
  const async = await server.as('none', '/orders/stream', { headers: { prefer: 'respond-async' } });
  assert.equal(async.status, 200, 'a preference that the key has no right to is ignored');
  await async.text();
});

test('a key has its own limit of requests', async (t) => {
  const keys = [{ name: 'few', rate: '2/h' }, { name: 'as-server' }];
  const server = await keyedServer(t, 'sqlite', keys, RESOURCES, { RATE_LIMIT: '5/h' });
  for (const [name, allowed, words] of [
    ['few', 2, /^The key allows 2 requests/],
    ['as-server', 5, /^RATE_LIMIT allows a client 5 requests/],
  ] as const) {
    for (let n = 0; n < allowed; n++) {
      const { status, headers } = await server.as(name, '/orders?limit=1');
      assert.deepEqual([status, headers.get('ratelimit-policy')], [200, `"default";q=${allowed};w=3600`]);
    }
    assert.match((await problemOf(server.as(name, '/orders?limit=1'))).detail, words);
  }
});

test('exports belong to a key with its rights: other keys and changed rights do not find them', async (t) => {
  const keys = [ORDERS, { name: 'other', resources: ['orders'] }];
  const server = await keyedServer(t, 'sqlite', keys, RESOURCES, { EXPORT_LIMIT: '1' });
  const { id } = await server.exported('shop', { resource: 'orders' });
  const seen = async (name: string) => {
    const one = await server.as(name, `/exports/${id}`);
    const file = await server.as(name, `/exports/${id}/file`);
    const list = (await (await server.as(name, '/exports')).json()) as { data: unknown[] };
    await file.body?.cancel();
    await one.body?.cancel();
    return [one.status, file.status, list.data.length];
  };
  assert.deepEqual(await seen('shop'), [200, 200, 1]);
  assert.deepEqual(await seen('other'), [404, 404, 0]);
  await server.rewrite([{ ...ORDERS, resources: ['orders', 'secrets'] }]);
  assert.deepEqual(await seen('shop'), [404, 404, 0]);
  await server.rewrite([{ ...ORDERS, rate: '100/s' }]);
  assert.deepEqual(await seen('shop'), [200, 200, 1]);
});

test('the server cuts a running stream at its next batch when its key loses the right', async (t) => {
  const text = 'x'.repeat(100_000);
  const rows = Array.from({ length: 200 }, (_, n) => ({ _id: n, kind: 'a', note: 'n', text }));
  const whole = { ...ORDERS, expires: '2999-01-01T00:00:00Z' };
  const part = { ...whole, where: { orders: { kind: 'a' } }, hide: { orders: ['note'] } };
  const server = await keyedServer(t, 'sqlite', [whole], [{ name: 'orders', rows, indexes: [['kind']] }]);
  const { id } = await server.exported('shop', { resource: 'orders' });
  const readMeanwhile = async (path: string, before: KeyGiven, after: KeyGiven) => {
    assert.ok(await server.rewrite([before]));
    const rest = await begun(server.as('shop', path, { headers: { 'accept-encoding': 'identity' } }));
    assert.ok(await server.rewrite([after]));
    return rest();
  };
  for (const after of [{ name: 'shop' }, { ...whole, actions: ['stream', 'export'], rate: '1/s' }])
    assert.ok(
      (await readMeanwhile('/orders/stream', whole, after)) > 19_000_000,
      'what is added changes nothing',
    );
  const expired = '2000-01-01T00:00:00Z';
  const gone = [{ ...whole, expires: expired }, { name: 'other' }, { ...ORDERS, resources: ['items'] }, part];
  for (const [path, before, less] of [
    ['/orders/stream', whole, [...gone, { ...whole, actions: ['read'] }]],
    [`/exports/${id}/file`, whole, [...gone, { ...whole, actions: ['stream'] }]],
    ['/orders/stream?follow=true', whole, [...gone, { ...whole, actions: ['stream'] }]],
    [
      '/orders/stream',
      part,
      [
        { ...part, expires: expired },
        { ...part, where: { orders: { kind: 'b' } } },
        { ...part, hide: { orders: ['note', 'text'] } },
      ],
    ],
  ] as const)
    for (const after of less)
      await assert.rejects(
        readMeanwhile(path, before, after),
        /terminated/,
        `${path} ${JSON.stringify(after)}`,
      );
});

test('the log warns of a key whose changes cannot be read when the server reads the keys file', async (t) => {
  const lines: string[] = [];
  const part = { name: 'shop', where: { orders: { status: 'new' } } };
  const server = await keyedServer(t, 'mongodb', [part], RESOURCES, {}, { log: logTo(lines) });
  if (!server) return;
  assert.doesNotMatch(lines.join(''), /changes of orders/);
  assert.ok(await server.rewrite([{ ...part, actions: ['read', 'changes'] }]));
  assert.match(lines.join(''), /key shop: changes of orders are refused, because the key opens a part of it/);
  const refused = await server.as('shop', '/orders/changes');
  assert.equal(refused.status, 403);
  assert.doesNotMatch(await refused.text(), /collMod|runCommand/);
  assert.match(lines.join(''), /Changes of parts are refused.*collMod/);
});

test('a file with faults changes nothing, and the log says why', async (t) => {
  const lines: string[] = [];
  const log = logTo(lines);
  const server = await keyedServer(t, 'sqlite', [ORDERS], RESOURCES, {}, { log });
  assert.equal(await server.rewrite([{ ...ORDERS, resources: ['order'] }]), false);
  assert.match(lines.join(''), /key shop: there is no resource \\"order\\"/);
  assert.equal((await server.as('shop', '/orders')).status, 200);
  assert.equal(await server.rewrite([{ name: 'new', resources: ['secrets'] }]), true);
  assert.equal((await server.as('shop', '/orders')).status, 401);
  assert.equal((await server.as('new', '/secrets')).status, 200);
  assert.doesNotMatch(lines.join(''), /secret-of|[0-9a-f]{64}/);
});

test('the log has a line for each refusal and for each set that was taken', async (t) => {
  const lines: string[] = [];
  const log = logTo(lines);
  const keys = [{ ...ORDERS, actions: ['stream', 'export'] }];
  const server = await keyedServer(t, 'sqlite', keys, RESOURCES, {}, { log });
  for (const path of ['/orders', '/secrets', '/orders/stream?status=new'])
    await (await server.as('shop', path)).text();
  await (await server.as('mallory', '/orders')).text();
  const { id } = await server.exported('shop', { resource: 'orders' });
  await (await server.as('shop', `/exports/${id}/file`)).arrayBuffer();
  await (await server.as('shop', `/exports/${id}/file`, { method: 'HEAD' })).arrayBuffer();
  await server.close();
  const audit = auditOf(lines);
  assert.deepEqual(
    audit.map(({ audit: what, client, path, resource, status, code, rows }) => [
      ...[what, client, path, resource, status, code ?? rows],
    ]),
    [
      ['refused', 'key:shop', '/orders', 'orders', 403, 'forbidden'],
      ['refused', 'key:shop', '/secrets', 'secrets', 404, 'not-found'],
      ['exported', 'key:shop', '/orders/stream', 'orders', 200, 50],
      ['refused', '127.0.0.1', '/orders', 'orders', 401, 'unauthorized'],
      ['ordered', 'key:shop', '/exports', 'orders', 202, 0],
      ['exported', 'key:shop', `/exports/${id}/file`, 'orders', 200, 50],
    ],
  );
  const rights = audit.map((line) => line.rights);
  assert.match(String(rights[0]), /^[0-9a-f]{32}$/, 'rights are a hash');
  assert.deepEqual(rights, [rights[0], rights[0], rights[0], undefined, rights[0], rights[0]]);
  assert.doesNotMatch(lines.join(''), /secret-of|status=new/);
});

test('keys with faults stop the start, and so does a cache that would share answers', async (t) => {
  await assert.rejects(
    keyedServer(t, 'sqlite', [{ name: 'shop', resources: ['order', 'items', 'users'] }], RESOURCES),
    (error) =>
      error instanceof Faults &&
      error.faults.length === 1 &&
      error.message.includes(
        'key shop: there is no resource "order": expected orders, secrets, items, users',
      ),
  );
  const API_KEYS_FILE = join(await temporaryFolder(t), 'keys.json');
  await writeFile(API_KEYS_FILE, keysText([ORDERS]));
  const configOf = (CACHE_CONTROL: string) => readConfig({ API_KEYS_FILE, CACHE_CONTROL });
  for (const shared of ['public, max-age=60', 'max-age=1,PUBLIC', 's-maxage=5', 'no-cache, must-revalidate'])
    assert.throws(
      () => configOf(shared),
      /CACHE_CONTROL must not have (public|s-maxage|must-revalidate without private) with API_KEYS_FILE/,
    );
  for (const own of ['private, must-revalidate', 'no-store, must-revalidate'])
    assert.equal(configOf(own).CACHE_CONTROL, own);
  assert.equal(readConfig({ CACHE_CONTROL: 'public' }).CACHE_CONTROL, 'public');
});

test('answers to keys vary by key', async (t) => {
  const server = await keyedServer(t, 'sqlite', [ORDERS], RESOURCES);
  for (const path of ['/orders', '/nothing', '/openapi.json', '/resources', '/orders/stream']) {
    const answer = await server.as('shop', path);
    assert.match(answer.headers.get('vary') ?? '', /(^|, )Authorization(,|$)/, path);
    await answer.text();
  }
});
