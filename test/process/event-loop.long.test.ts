import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { childServer, logged } from '../support/process/child-server.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import type { StoreName } from '../support/process/server.ts';

const METER = pathToFileURL(join(import.meta.dirname, '../support/process/loop-hold.mjs')).href;
const TIMES = 30;
/** Warm-up, until the code of the requests is compiled. */
const WARM = 5;
const MOST_MS = 50;
const P999_MS = 20;
/**
 * A user of nearly 1 MiB. Metadata may have 50 values of 500 characters. The rest is refused, but is read and
 * parsed.
 */
const LARGE_BODY = JSON.stringify({ name: 'x', email: 'a@b', metadata: { a: 'x'.repeat(1_000_000) } });

const get = (path: string, coding = 'identity') => ({
  path,
  init: { headers: { 'accept-encoding': coding } },
});
const send = (method: string, path: string, body: string) => ({
  path,
  init: { method, body, headers: { 'content-type': 'application/json' } },
});

/** The requests of one client. */
const REQUESTS: readonly (readonly [
  name: string,
  asked: { path: string; init: RequestInit },
  status: number,
])[] = [
  ['a page of 1,000', get('/items?limit=1000'), 200],
  ['a page of 1,000 by price, br', get('/items?limit=1000&sort=price_desc', 'br'), 200],
  ['a page of 1,000 users', get('/api/users?limit=1000', 'gzip'), 200],
  ['a deep page', get('/items?limit=100&offset=50000'), 200],
  ['an exact count', get('/items?limit=1&category=Ideal&count=exact'), 200],
  ['partitions', get('/items/partitions?n=64'), 200],
  ['a stream', get('/items/stream'), 200],
  ['a stream, br', get('/items/stream', 'br'), 200],
  ['a stream by price', get('/items/stream?sort=price_asc'), 200],
  ['a stream of CSV, gzip', get('/items/stream?format=csv', 'gzip'), 200],
  ['the document', get('/openapi.json', 'br'), 200],
  ['a user', send('PUT', '/api/users/ada', '{"name":"Ada","email":"ada@example.org"}'), 200],
  ['a user of 1 MiB', send('PUT', '/api/users/ada', LARGE_BODY), 422],
  ['an export', send('POST', '/exports', '{"category":"Fair","compression":"br"}'), 202],
  ['an export in Arrow', send('POST', '/exports', '{"format":"arrow"}'), 202],
  ['an export in Parquet', send('POST', '/exports', '{"format":"parquet"}'), 202],
];

for (const store of ['sqlite', 'mongodb'] satisfies StoreName[])
  test(`no request to a server on ${store} holds the event loop for over ${MOST_MS} ms`, async (t) => {
    const uri = store === 'mongodb' ? await testMongo(t) : '';
    if (uri === null) return;
    const server = await childServer(t, {
      MONGODB_URI: uri,
      SAMPLE: 'on',
      RATE_LIMIT: 'off',
      STREAM_LIMIT: 'off',
      EXPORT_LIMIT: '1000',
      LOG_LEVEL: 'info',
      NODE_OPTIONS: `--import ${METER}`,
    });
    const ask = async ({ path, init }: (typeof REQUESTS)[number][1], times: number) => {
      let status = 0;
      for (let i = 0; i < times; i++) {
        const response = await fetch(new URL(path, server.url), init);
        await response.arrayBuffer();
        status = response.status;
      }
      return status;
    };
    const held = async () => {
      process.kill(server.pid, 'SIGUSR2');
      return logged(server, 'held');
    };
    const late: string[] = [];
    let p999 = Infinity;
    for (const [name, asked, status] of REQUESTS) {
      await ask(asked, WARM);
      await held();
      assert.equal(await ask(asked, TIMES), status, name);
      const { turns = 0, longest = Infinity, ...rest } = await held();
      p999 = rest.p999 ?? Infinity;
      t.diagnostic(`${name}: ${turns} turns, the longest ${longest.toFixed(1)} ms`);
      if (longest > MOST_MS) late.push(name);
    }
    t.diagnostic(`p99.9 of all turns: ${p999.toFixed(1)} ms`);
    assert.equal(await server.end('SIGTERM'), 0);
    assert.deepEqual(late, []);
    assert.ok(p999 <= P999_MS);
  });
