import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatOfName } from '../../src/rows/text-files.ts';
import { parseTrustedProxies } from '../../src/access/proxies.ts';
import { valueAt } from '../../src/web/page/json.ts';
import type { Document } from '../../src/store/values/bson.ts';
import { keyedServer } from '../support/access/keyed.ts';
import { jsonOf, textOf, type Page } from '../support/answers.ts';
import { read } from '../support/import/import-reading.ts';
import { resourceServer, resourcesFile } from '../support/resources/resources.ts';
import { STORES } from '../support/process/server.ts';

/** The names that every object of JavaScript has. */
const NAMES = [...Object.getOwnPropertyNames(Object.prototype), 'prototype'].sort();

/** A setter, a function that makes objects, and those that conversions call. */
const ODD_NAMES = ['__proto__', 'constructor', 'toString', 'valueOf'];

/** Every way in which a query of /m can use a name. */
const QUERIES: readonly ((name: string) => string)[] = [
  (name) => `/m?${name}=x`,
  (name) => `/m?v=${name}:x`,
  (name) => `/m?v=${name}`,
  (name) => `/m?v.gte=${name}:x`,
  (name) => `/m?sort=${name}_asc`,
  (name) => `/m?fields=${name},v.${name}`,
  (name) => `/m/stream?${name}.gte=x`,
  (name) => `/m/stream?format=csv&fields=${name}`,
  (name) => `/m/stream?format=arrow&fields=${name}`,
  (name) => `/m/stream?format=arrow&columns=id:${name}`,
  (name) => `/m/stream?after=${name}`,
  (name) => `/m/stream?sort=v_asc&after=${name},${name}`,
  (name) => `/m/stream?cursor=${name}`,
  (name) => `/m/stream?format=${name}`,
  (name) => `/m/partitions?n=2&${name}=x`,
  (name) => `/m/values?field=${name}`,
  (name) => `/m/values?field=v&${name}=x`,
  (name) => `/m/changes?since=${name}&v=${name}:x`,
  (name) => `/m/${name}`,
  (name) => `/${name}`,
  (name) => `/${name}/stream`,
  (name) => `/problems/${name}`,
  (name) => `/exports/${name}`,
  (name) => `/api/users/${name}`,
  (name) => `/explorer/${name}`,
];

for (const store of STORES)
  test(`${store}: names of Object.prototype are fields and values as any others`, async (t) => {
    const rows = NAMES.map((name, n): Document => ({
      _id: n,
      v: `${name}:x`,
      [`${name}x`]: 1,
      o: new Map([[name, n]]),
    }));
    const named = NAMES.filter((name) => name !== '__proto__');
    for (const row of rows) for (const name of named) row[name] = `${name}:${String(row._id)}`;
    const RESOURCES_FILE = await resourcesFile(t, { resources: { items: {} } });
    const indexes = [['v'], ['constructor'], ['hasOwnProperty', 'toString']];
    const server = await resourceServer(t, store, { name: 'm', rows, indexes }, { RESOURCES_FILE });
    if (!server) return;
    for (const [n, name] of NAMES.entries()) {
      const page = await jsonOf(server.get(`/m?v=${name}:x&fields=${name},o.${name}`));
      const [row, ...others] = (page as Page).data;
      assert.ok(row && others.length === 0, name);
      assert.equal(row.id, n);
      if (name !== '__proto__') assert.equal(row[name], `${name}:${n}`);
      assert.deepEqual(Object.entries(row.o as object), [[name, n]]);
    }
    for (const path of [
      '/m/stream?constructor=constructor:3',
      '/m/stream?hasOwnProperty=hasOwnProperty:3&sort=toString_desc',
      '/m/stream?constructor.gte=constructor:3&constructor.lte=constructor:3',
    ])
      assert.match(await textOf(server.get(path)), /^\{"id":3,.*\}\n$/, path);
  });

test('no query with names of Object.prototype fails otherwise than with an unknown name', async (t) => {
  const rows = [{ _id: 'a', v: 'x' }];
  const server = await resourceServer(t, 'sqlite', { name: 'm', rows, indexes: [['v']] });
  for (const query of QUERIES) {
    const { status: usual } = await server.get(query('unknown'));
    assert.ok(usual < 500, query('unknown'));
    for (const name of ODD_NAMES) {
      const answer = await server.get(query(name));
      await answer.arrayBuffer();
      assert.equal(answer.status, usual, query(name));
    }
  }
  for (const name of ODD_NAMES)
    for (const body of [`{"${name}":"x"}`, `{"resource":"${name}"}`, `{"name":"n","metadata":{"${name}":1}}`])
      for (const path of ['/exports', '/api/users']) {
        const answer = await fetch(server.url + path, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        });
        await answer.arrayBuffer();
        assert.ok(answer.status >= 400 && answer.status < 500, `${path} ${body}: ${answer.status}`);
      }
});

test('a key can have names of Object.prototype as values and as names of fields', async (t) => {
  const rows = NAMES.map((name, n) => ({ _id: n, v: `${name}:x` }));
  const keys = NAMES.map((name) => ({
    name,
    where: { m: { v: `${name}:x` } },
    hide: { m: [name === '__proto__' ? 'x' : name] },
  }));
  const server = await keyedServer(t, 'sqlite', keys, [{ name: 'm', rows, indexes: [['v']] }]);
  for (const [n, name] of NAMES.entries())
    assert.equal(await textOf(server.as(name, '/m/stream')), `{"id":${n},"v":"${name}:x"}\n`);
});

test('settings, imports, file names and the page take names of Object.prototype as any other text', async () => {
  for (const name of NAMES) {
    assert.equal(parseTrustedProxies(name).faults.length, 1, name);
    const types = new Map([['price', 'boolean' as const]]);
    const { bad } = await read(JSON.stringify({ category: 'a', price: name }), 'ndjson', { types });
    assert.deepEqual(bad, [`1: field "price": "${name}" is not true or false`]);
    assert.equal(formatOfName(`file.${name}`), null);
    assert.equal(valueAt({ a: {} }, name), undefined);
    assert.equal(valueAt({ a: {} }, `a.${name}`), undefined);
  }
});
