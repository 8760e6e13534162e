import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type * as client from '../../clients/javascript/sluice.ts';
import { openChromium, openTab } from '../support/web/chromium.ts';
import { startCutter } from '../support/faults/cutter.ts';
import { bearer, keyedServer } from '../support/access/keyed.ts';
import { NDJSON, proofOf, ROWS_OF_TWO, scriptedServer } from '../support/pull/pulling.ts';
import { serverOn, testServer } from '../support/process/server.ts';
import { opened, PATH } from '../support/resources/several.ts';

/** The file that the server hands out. */
const BUILT = join(import.meta.dirname, '../../src/web/clients/sluice.mjs');
const { rows, follow, SluiceError } = (await import(pathToFileURL(BUILT).href)) as typeof client;

async function allOf<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of iterable) all.push(one);
  return all;
}

/** The error with which an iteration ends. */
async function errorOf(iterable: AsyncIterable<unknown>): Promise<InstanceType<typeof SluiceError>> {
  const ended = await allOf(iterable).catch((error: unknown) => error);
  assert.ok(ended instanceof SluiceError, String(ended));
  return ended;
}

const problem = (status: number, headers: Record<string, string> = {}) =>
  [status, { 'content-type': 'application/problem+json', ...headers }] as const;

test('rows gives each row once and in order, through cut connections', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws', { SAMPLE: 'auto' });
  const cutter = await startCutter(t, server.url);
  const sizes = [4_000_000, 200, 3_000_000];
  cutter.nextAfter = () => sizes.shift() ?? Infinity;
  const failures: string[] = [];
  const onRetry = ({ message }: Error) => failures.push(message);
  const got = await allOf(rows(`${cutter.url}/items?sort=price_desc`, { onRetry }));
  assert.equal(sizes.length, 0, 'every cut occurred');
  assert.equal(failures.length, 3, failures.join('; '));
  const plain = await (await server.get('/items/stream?sort=price_desc&format=json')).json();
  assert.deepEqual(got, plain);
  assert.equal((await allOf(rows(`${server.url}/items/stream?limit=3&category=Fair`))).length, 3);
});

test('a row that nothing proves is not given, and a set that is cut for good ends with Interrupted', async (t) => {
  const wrong = ROWS_OF_TWO + proofOf('end', ROWS_OF_TWO, 2).replace(/"crc32":"\w{8}"/, '"crc32":"00000000"');
  const open = ROWS_OF_TWO;
  for (const [body, message] of [
    [wrong, /crc32 is \d+, not 0/],
    [open, /the connection was cut/],
  ] as const) {
    const { url } = await scriptedServer(t, [(_, response) => response.writeHead(200, NDJSON).end(body)]);
    const given: unknown[] = [];
    await assert.rejects(
      async () => {
        for await (const row of rows(url, { retryFor: 0 })) given.push(row);
      },
      (error) => error instanceof SluiceError && error.name === 'Interrupted' && message.test(error.message),
    );
    assert.deepEqual(given, []);
  }
});

test('the next attempt waits for Retry-After, and the wait ends when the signal is aborted', async (t) => {
  const { url, asked } = await scriptedServer(t, [
    (_, response) => response.writeHead(...problem(429, { 'retry-after': '7' })).end('{}'),
  ]);
  const leave = new AbortController();
  const waits: number[] = [];
  const onRetry = (_: Error, waitMs: number) => {
    waits.push(waitMs);
    setImmediate(() => leave.abort(new Error('left')));
  };
  await assert.rejects(allOf(rows(url, { onRetry, signal: leave.signal })), { message: 'left' });
  assert.deepEqual(waits, [7000]);
  assert.equal(asked.length, 1);
});

test('an answer that another attempt cannot mend has a name, and is not asked for again', async (t) => {
  for (const [status, name, remedy] of [
    [400, 'BadRequest', /400: No\.$/],
    [401, 'Unauthorized', /option `key`/],
    [403, 'Forbidden', /403: No\.$/],
    [404, 'NotFound', /URL is that of a resource/],
    [410, 'Gone', /begin again from its first row/],
    [413, 'Refused', /413: No\.$/],
  ] as const) {
    const { url, asked } = await scriptedServer(t, [
      (_, response) => response.writeHead(...problem(status)).end('{"detail":"No."}'),
    ]);
    for (const iterable of [rows(url), follow(url), follow(url, { since: 'c1' })]) {
      const error = await errorOf(iterable);
      assert.deepEqual([error.name, error.status], [name, status]);
      assert.match(error.message, remedy);
    }
    assert.equal(asked.length, 3);
  }
  const { url } = await scriptedServer(t, [
    (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>hello'),
  ]);
  const { name, message } = await errorOf(rows(url));
  assert.equal(name, 'Refused');
  assert.match(message, /text\/html/);
  await assert.rejects(allOf(rows('http://me:secret@127.0.0.1/items')), TypeError);
});

test('follow takes the changes of several resources, each with its name, and needs since for them', async (t) => {
  const at = await opened(t, 'sqlite');
  const url = `${at.server.url}${PATH}`;
  await assert.rejects(allOf(follow(url)), TypeError);
  const seen: unknown[] = [];
  let cursor = 'now';
  let wrote = false;
  for (let round = 0; round < 2; round++)
    for await (const batch of follow(url, { since: cursor, key: 'secret-of-all' })) {
      cursor = batch.cursor;
      seen.push(...batch.changes);
      if (round === 0) break;
      if (!wrote) {
        wrote = true;
        await at.orders.put({ _id: 'o1', id: 'own' });
        await at.customers.remove('customers-0');
      }
      if (seen.length >= 2 && batch.upToDate) break;
    }
  assert.deepEqual(
    new Set(seen),
    new Set([
      { resource: 'orders', id: 'o1', row: { _id: 'o1', id: 'own' } },
      { resource: 'customers', id: 'customers-0', row: null },
    ]),
  );
});

test('follow makes a copy that equals the set, through cut connections', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws');
  const row = (n: number) => ({ _id: `id-${n}`, category: 'Fair', price: n });
  await server.insert(Array.from({ length: 500 }, (_, n) => row(n)));
  const cutter = await startCutter(t, server.url);
  const sizes = [20_000, 100];
  cutter.nextAfter = () => sizes.shift() ?? Infinity;
  const copy = new Map<unknown, unknown>();
  let cursor = '';
  for await (const batch of follow(`${cutter.url}/items`)) {
    for (const { id, row } of batch.changes)
      if (row === null) copy.delete(id);
      else copy.set(id, row);
    cursor = batch.cursor;
    if (!batch.upToDate) continue;
    if (copy.size === 502) break;
    assert.equal(copy.size, 500);
    await server.insert([row(500), row(501)]);
  }
  assert.deepEqual(sizes, []);
  await server.insert([row(502)]);
  const late: unknown[] = [];
  for await (const { changes } of follow(`${server.url}/items`, { since: cursor })) {
    late.push(...changes);
    if (late.length > 0) break;
  }
  assert.deepEqual(late, [{ id: 'id-502', row: { id: 'id-502', category: 'Fair', price: 502 } }]);
  const now = follow(`${server.url}/items?category=Fair`, { since: 'now' });
  const first = await now.next();
  assert.ok(first.done !== true && first.value.upToDate && first.value.changes.length === 0);
  await server.insert([row(503)]);
  const second = await now.next();
  assert.deepEqual(!second.done && second.value.changes.map(({ id }) => id), ['id-503']);
  await now.return();
});

test('in Chromium the module reads rows and follows with a key, and names what is refused', async (t) => {
  const browser = await openChromium(t);
  if (!browser) return;
  const own = [{ _id: 'a', tenant: 'acme' }];
  const server = await keyedServer(
    t,
    'sqlite',
    [{ name: 'ada' }],
    [{ name: 'orders', rows: own, indexes: [['tenant']] }],
  );
  const foreign = await serverOn(t, { MONGODB_URI: '' });
  const { page } = await openTab(browser);
  await page.goto(`${server.url}/livez`);
  const inPage = (source: string): Promise<unknown> =>
    page.evaluate(`(async () => {
      const { rows, follow } = await import('/clients/sluice.mjs');
      const key = 'secret-of-ada';
      const allOf = async (iterable) => { const all = []; for await (const one of iterable) all.push(one); return all; };
      const nameOf = (iterable) => allOf(iterable).then(String, ({ name, message }) => name + ': ' + message);
      ${source}
    })()`);
  assert.deepEqual(await inPage(`return allOf(rows('/orders', { key }))`), [{ id: 'a', tenant: 'acme' }]);
  assert.match(String(await inPage(`return nameOf(rows('/orders'))`)), /^Unauthorized: .*option `key`/);
  assert.match(String(await inPage(`return nameOf(follow('/nothing', { key }))`)), /^NotFound: /);
  assert.match(
    String(await inPage(`return nameOf(follow('${foreign.url}/items'))`)),
    new RegExp(
      `^CorsRefused: ${foreign.url} answers, but not to pages of ${server.url}: its setting CORS_ORIGIN`,
    ),
  );
  const followed = await inPage(`
    for await (const { changes, upToDate } of follow('/orders', { key })) if (upToDate) return changes;
  `);
  assert.deepEqual(followed, [{ id: 'a', row: { id: 'a', tenant: 'acme' } }]);
  assert.equal((await server.get('/orders', bearer('ada'))).status, 200);
});
