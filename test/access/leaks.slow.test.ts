import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { jsonOf, linesOf, type Page } from '../support/answers.ts';
import { awaited, post } from '../support/exports/exports.ts';
import { bearer, keyedServer, type KeyGiven, type KeyedServer, type Rows } from '../support/access/keyed.ts';
import { keepImages } from '../support/store/parts.ts';
import type { StoreName } from '../support/process/server.ts';

/** The rows that the key may see are fewer than the others, and lie between them in every order. */
const OWN = 40;
const ALL = 400;
const isOwn = (n: number) => n % (ALL / OWN) === 5;
const pad = (n: number) => String(n).padStart(4, '0');

const ORDERS: Rows = {
  name: 'orders',
  rows: Array.from({ length: ALL }, (_, n) => ({
    _id: isOwn(n) ? `id-${pad(n)}` : `id-${pad(n)}-FOREIGN`,
    tenant: isOwn(n) ? 'acme' : 'FOREIGN',
    status: isOwn(n) ? `s${n % 3}` : `s${n % 3}-FOREIGN`,
    total: n,
    kind: isOwn(n) ? 'k' : n % 2, // of several types, only in foreign rows
    margin: `HIDDEN-${n}`,
    cost: { net: `HIDDEN-${n}`, gross: n },
    ...(!isOwn(n) && { [`FOREIGN${n}`]: 1 }),
  })),
  indexes: [
    ['tenant'],
    ['tenant', 'status'],
    ['tenant', 'total'],
    ['tenant', 'status', 'total'],
    ['tenant', 'kind'],
    ['tenant', 'margin'],
    ['status'],
    ['total'],
    ['margin'],
    ['status', 'tenant'],
  ],
};
const SECRETS: Rows = { name: 'secrets', rows: [{ _id: 'FOREIGN' }], indexes: [] };
const ACME: KeyGiven = {
  name: 'acme',
  where: { orders: { tenant: 'acme' } },
  hide: { orders: ['margin', 'cost.net'] },
};
/** Does not know by what its rows are chosen. */
const BLIND = { ...ACME, name: 'blind', hide: { orders: ['tenant', 'margin', 'cost.net'] } };
const KEYS: readonly KeyGiven[] = [
  ACME,
  BLIND,
  { name: 'hides', hide: { orders: ['margin'] } },
  { name: 'all' },
];

/** All text that an answer has, with its headers, and with the content of every token in it. */
async function contentOf(response: Response): Promise<string> {
  const bytes = Buffer.from(await response.arrayBuffer());
  const text = bytes.toString('latin1');
  const headers = [...response.headers].map((pair) => pair.join(': ')).join('\n');
  const tokens = `${headers}\n${text}`.match(/[A-Za-z0-9_-]{12,}/g) ?? [];
  const decoded = tokens.map((token) => Buffer.from(token, 'base64url').toString('latin1'));
  return [headers, text, ...decoded].join('\n');
}

/** The part of an endless response until its reader is up to date. */
async function untilUpToDate({ body, status, headers }: Response): Promise<Response> {
  let bytes = Buffer.alloc(0);
  for await (const piece of body ?? []) {
    bytes = Buffer.concat([bytes, piece]);
    if (bytes.includes('"upToDate":true')) break;
  }
  return new Response(bytes, { status, headers });
}

function assertNoLeak(text: string, at: string): void {
  // What a client wrote itself comes back in problems, so requests spell foreign things in lower case.
  for (const leak of ['FOREIGN', 'HIDDEN'])
    assert.ok(
      !text.includes(leak),
      `${at}: ${leak} at ${text.slice(Math.max(0, text.indexOf(leak) - 200)).slice(0, 400)}`,
    );
}

/** Whether a key without limits sees foreign rows: the test of the test. */
async function leaks(server: KeyedServer, path: string): Promise<boolean> {
  return /FOREIGN|HIDDEN/.test(await contentOf(await server.as('all', path)));
}

/** Every way to ask for rows, with the number of rows that the key has there. null: no rows are counted. */
const READS: readonly (readonly [path: string, rows: number | null])[] = [
  ['/orders?limit=1000', OWN],
  ['/orders?limit=1000&sort=id_desc', OWN],
  ['/orders?limit=1000&sort=total_asc', OWN],
  ['/orders?limit=1000&sort=total_desc', OWN],
  ['/orders?limit=1000&sort=status_desc', OWN],
  ['/orders?limit=1000&sort=kind_asc', OWN],
  ['/orders?limit=1000&total.gte=0&total.lt=400', OWN],
  ['/orders?limit=1000&tenant=acme', OWN],
  ['/orders?limit=1000&tenant=acme&sort=total_asc', OWN],
  ['/orders?limit=1000&tenant=foreign', 0],
  ['/orders?limit=1000&tenant=str:acme', OWN],
  ['/orders?limit=1000&tenant=int:1', 0],
  ['/orders?limit=1000&tenant=null:', 0],
  ['/orders?limit=1000&tenant.eq=other&sort=total_desc', 0],
  ['/orders?limit=1000&status.in=s0,s1,s2', OWN],
  ['/orders?limit=1000&status.in=s2,s0,s1&sort=status.in,total_desc', OWN],
  ['/orders?limit=1000&offset=1&status.in=s0-foreign,s0,s1,s2', OWN - 1],
  ['/orders?limit=1000&tenant.in=foreign,acme', OWN],
  ['/orders?limit=1000&tenant.in=foreign,acme&sort=tenant.in,total_asc', OWN],
  ['/orders?limit=1000&tenant.in=foreign,other', 0],
  ['/orders?limit=1000&offset=0', OWN],
  ['/orders?limit=1000&page=1', OWN],
  ['/orders?limit=1000&offset=1', OWN - 1],
  ['/orders?limit=1000&fields=id,margin,tenant', OWN],
  ['/orders/stream', OWN],
  ['/orders/stream?checkpoints=true', null],
  ['/orders/stream?sort=total_desc', OWN],
  ['/orders/stream?tenant=foreign', 0],
  ['/orders/stream?status.in=s0,s1,s2', OWN],
  ['/orders/stream?after=id-0000', OWN],
  ['/orders/stream?after=id-0001-foreign', OWN],
  ['/orders/stream?sort=total_asc&after=0,id-0000', OWN],
  ['/orders/stream?format=json', null],
  ['/orders/stream?format=csv', null],
  ['/orders/stream?format=csv&safe=true&fields=id,margin,cost,total', null],
  ['/orders/stream?format=arrow', null],
  ['/orders/values?field=status', null],
  ['/orders/values?field=kind&count=exact', null],
  ['/orders/values?field=total&limit=1000&count=exact', null],
  ['/orders/values?field=total&status=s1', null],
  ['/orders/partitions?n=64', null],
  ['/orders?count=exact&limit=1', null],
  ['/orders?count=estimated&limit=1', null],
  ['/orders?count=exact&limit=1&tenant=foreign', null],
  ['/orders/partitions?n=8&status.in=s0,s1', null],
  ['/orders?count=exact&limit=1&status.in=s0,s1', null],
  ['/orders/id-0005', null],
];

for (const store of ['sqlite', 'mongodb'] satisfies StoreName[]) {
  test(`${store}: the leak table`, async (t) => {
    const server = await keyedServer(t, store, KEYS, [ORDERS, SECRETS]);
    if (!server) return;
    await keepImages(t, server.mongo, 'orders');
    await t.test('no read reveals a foreign row or a hidden field', async () => {
      let leaking = 0;
      for (const name of ['acme', 'blind'])
        for (const [path, rows] of READS) {
          const asked: Response | null =
            name === 'blind' && path.includes('tenant') ? null : await server.as(name, path);
          if (!asked) continue;
          assert.equal(asked.status, 200, path);
          assert.equal(asked.headers.get('filtered-by-key'), 'true', path);
          assert.match(asked.headers.get('vary') ?? '', /Authorization/);
          assert.ok(Number(asked.headers.get('estimated-rows')) <= OWN, path);
          const text = await contentOf(asked);
          assertNoLeak(text, path);
          if (name === 'blind') assert.doesNotMatch(text, /tenant|acme/, path);
          if (rows !== null) assert.equal(text.split('"id":"id-').length - 1, rows, path);
          if (name === 'acme' && (await leaks(server, path).catch(() => false))) leaking++;
        }
      assert.ok(leaking > 15, 'a key without limits gets foreign rows by the same requests');
    });

    await t.test('counts, values and partitions cover only the rows of the key', async () => {
      const get = async <T>(path: string) => (await jsonOf(server.as('acme', path))) as T;
      const sumOf = (sizes: readonly number[]) => sizes.reduce((a, b) => a + b, 0);
      for (const mode of ['exact', 'estimated']) {
        const { page } = await get<Page>(`/orders?limit=1&count=${mode}`);
        assert.deepEqual([page.hasMore, page.total, page.totalIs], [true, OWN, 'exact']);
      }
      interface Values {
        data: { value: string; count: number }[];
      }
      const { data } = await get<Values>('/orders/values?field=status&count=exact');
      assert.equal(data.map(({ value }) => value).join(), 's0,s1,s2');
      assert.equal(sumOf(data.map(({ count }) => count)), OWN);
      const { partitions } = await get<{ partitions: { url: string }[] }>('/orders/partitions?n=4');
      assert.equal(partitions.length, 4);
      const parts = await Promise.all(partitions.map(({ url }) => linesOf(server.as('acme', url))));
      const sizes = parts.map(({ length }) => length);
      assert.equal(sumOf(sizes), OWN);
      assert.ok(Math.max(...sizes) <= OWN / 2, `parts are cut from the own rows: ${sizes.join()}`);
      interface List {
        resources: { name: string; rows: number; links: object }[];
      }
      const { resources } = await get<List>('/resources');
      assert.deepEqual(
        resources.map(({ name, rows, links }) => [name, rows, 'changes' in links]),
        [['orders', OWN, true]],
      );
      assertNoLeak(JSON.stringify(resources), '/resources');
      assert.doesNotMatch(JSON.stringify(resources), /margin|createIndex|sluice index|"tenant/);
    });

    await t.test('a foreign row gets the same bytes as a missing row, for any precondition', async () => {
      const foreign = await server.as('all', '/orders/id-0004-FOREIGN');
      const etag = foreign.headers.get('etag') ?? '';
      assert.equal(foreign.status, 200);
      const conditions = [
        {},
        { 'if-none-match': '*' },
        { 'if-none-match': etag },
        { 'if-match': '*' },
        { 'if-match': etag },
        { 'if-match': '"x"' },
        { 'if-match': 'x' },
        { accept: 'text/html' },
      ];
      for (const headers of conditions as Record<string, string>[])
        for (const method of ['GET', 'HEAD']) {
          const ask = async (id: string): Promise<string> => {
            const answer: Response = await server.as('acme', `/orders/${id}`, {
              headers: { ...headers, 'x-request-id': 'same' },
              method,
            });
            const all = [...answer.headers].filter(([name]) => !/^(date|ratelimit)$/.test(name));
            return [answer.status, JSON.stringify(all), await answer.text()].join('\n').replaceAll(id, 'ID');
          };
          assert.equal(
            await ask('id-0004-FOREIGN'),
            await ask('id-9994-NOTHING'),
            JSON.stringify({ headers, method }),
          );
        }
      const own = await server.as('acme', '/orders/id-0005');
      assert.equal(Object.keys((await own.json()) as object).join(), 'id,tenant,status,total,kind,cost');
      assert.notEqual(
        own.headers.get('etag'),
        (await server.as('all', '/orders/id-0005')).headers.get('etag'),
      );
    });

    await t.test(
      'exports of a key contain only its rows and fields, and no other key finds them',
      async () => {
        const files: string[] = [];
        for (const wanted of [
          {},
          { format: 'csv' },
          { sort: 'total_desc', format: 'json' },
          { tenant: 'foreign' },
          { status: 's1', compression: 'gzip' },
          { 'status.in': ['s2', 's1', 's0'] },
        ]) {
          const { id, ...done } = await server.exported('acme', { resource: 'orders', ...wanted });
          assertNoLeak(JSON.stringify(done), JSON.stringify(wanted));
          assertNoLeak(Buffer.from(done.changes ?? '', 'base64url').toString('latin1'), 'its changes');
          assert.ok(!JSON.stringify(done.request).includes('where'));
          const file = Buffer.from(await (await server.as('acme', `/exports/${id}/file`)).arrayBuffer());
          const text = 'compression' in wanted ? gunzipSync(file).toString() : file.toString();
          assertNoLeak(text, JSON.stringify(wanted));
          files.push(text);
          for (const other of ['all', 'blind'])
            for (const [method, part] of [
              ['GET', ''],
              ['GET', '/file'],
              ['DELETE', ''],
            ] as const)
              assert.equal((await server.as(other, `/exports/${id}${part}`, { method })).status, 404);
        }
        assert.deepEqual(
          files.map((text) => (text.match(/id-\d{4}/g) ?? []).length),
          [OWN, OWN, OWN, 0, 13, OWN],
        );
        const async = await server.as('acme', '/orders/stream?sort=total_asc', {
          headers: { prefer: 'respond-async' },
        });
        assert.equal(async.status, 202);
        const { id } = (await async.json()) as { id: string };
        await awaited(server.url, id, undefined, bearer('acme'));
        assertNoLeak(await (await server.as('acme', `/exports/${id}/file`)).text(), 'respond-async');
        const refused = await post(server.url, { resource: 'secrets' }, bearer('acme'));
        assert.match(await refused.text(), /expected one of orders; got/);
      },
    );

    await t.test('no feed reveals a foreign row or a hidden field', async () => {
      const feed = await server.as('all', '/orders/stream');
      const since = feed.headers.get('changes-from');
      await feed.text();
      for (const name of ['acme', 'blind', 'hides'])
        for (const path of [
          '/orders/changes',
          `/orders/changes?since=${since}`,
          '/orders/stream?follow=true',
          `/orders/stream?follow=true&cursor=${since}`,
        ]) {
          const answer = await server.as(name, path);
          const text = await contentOf(await untilUpToDate(answer));
          const expected = path.includes(`${since}`) ? [200, 400] : [200]; // the place is another key's
          assert.ok(expected.includes(answer.status), `${name} ${path}: ${text}`);
          assert.doesNotMatch(text, name === 'hides' ? /"margin"/ : /HIDDEN|"margin"/, path);
          if (name !== 'hides') assertNoLeak(text.replaceAll(String(since), ''), path);
        }
    });

    await t.test('the OpenAPI document of a key names nothing that the key hides', async () => {
      const names = (text: string) => [...text.matchAll(/"name":"([^"]+)"/g)].map(([, name]) => name);
      const text = await (await server.as('blind', '/openapi.json')).text();
      assert.doesNotMatch(text, /margin|tenant|secrets|cost\.net/);
      assert.ok(names(text).includes('total.gte'));
      const { paths } = JSON.parse(text) as {
        paths: Record<string, { get?: { parameters: { name: string; example?: string }[] } }>;
      };
      const field = paths['/orders/values']?.get?.parameters.find(({ name }) => name === 'field');
      assert.ok(
        names(text).includes(field?.example ?? ''),
        'the example is a field that the key can ask for',
      );
      const whole = await (await server.as('all', '/openapi.json')).text();
      assert.match(whole, /margin/);
      assert.match(whole, /secrets/);
    });
  });
}
