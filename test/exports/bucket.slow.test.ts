import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import type { Export } from '../../src/exports/export.ts';
import { bearer, keyedServer } from '../support/access/keyed.ts';
import { awaited, exportRows, fileOf, order } from '../support/exports/exports.ts';
import { onCombinations } from '../support/process/each-server.ts';
import { program } from '../support/process/programs.ts';
import { testServer, type EngineName, type StoreName, type TestServer } from '../support/process/server.ts';
import { filesAt, keysAt, newFiles, PART_BYTES } from '../support/store/bucket/bucket.ts';
import { faultyGateway, IS, type FaultyGateway } from '../support/store/bucket/gateway.ts';
import { ADMIN, READER, Seaweed } from '../support/store/bucket/seaweed.ts';
import { shared } from '../support/tests-with.ts';

const seaweed = shared((t) => Seaweed.start(t));
/** Two parts of a bucket. */
const ROWS = exportRows(60_000);
const LARGE = { format: 'ndjson', compression: 'none' };
const SMALL = { format: 'csv', compression: 'gzip', category: 'b' };

interface InBucket {
  readonly server: TestServer;
  readonly gateway: FaultyGateway;
  readonly keys: ReturnType<typeof keysAt>;
}

async function inBucket(
  t: TestContext,
  store: StoreName,
  engine: EngineName,
  settings: Record<string, string> = {},
): Promise<InBucket | null> {
  const weed = await seaweed(t);
  if (!weed) return null;
  const gateway = await faultyGateway(t, weed.endpoint);
  const FILES = await newFiles(weed, gateway.endpoint);
  const server = await testServer(t, store, engine, { FILES, ...ADMIN, ...settings });
  if (!server) return null;
  await server.insert(ROWS);
  return { server, gateway, keys: keysAt(t, FILES) };
}

/** Resolves when `isIt` does with true. */
async function until(isIt: () => Promise<boolean>): Promise<void> {
  while (!(await isIt()));
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const linked = (url: string, { file }: Export, headers = {}, more = '') =>
  fetch(`${url}${file?.url}${more}`, { redirect: 'manual', headers });

onCombinations(
  (t, { store, engine }) => inBucket(t, store, engine),
  (it) => {
    it('a download is a link that the bucket answers, or a stream, and both are the file', async ({
      server,
      keys,
    }) => {
      const { url } = server;
      for (const body of [LARGE, SMALL]) {
        const done = await awaited(url, (await order(url, body)).id);
        assert.equal((done.file?.bytes ?? 0) > PART_BYTES, body === LARGE);
        const etag = `"${done.file?.sha256}"`;
        const answer = await linked(url, done);
        assert.equal(answer.status, 307);
        assert.equal(await answer.text(), '');
        assert.equal(answer.headers.get('etag'), etag);
        assert.equal(answer.headers.get('cache-control'), 'no-store');
        const digest = `sha-256=:${Buffer.from(done.file?.sha256 ?? '', 'hex').toString('base64')}:`;
        assert.equal(answer.headers.get('repr-digest'), digest);
        const link = answer.headers.get('location') ?? '';
        assert.equal(new URL(link).searchParams.get('X-Amz-Expires'), '900');
        const got = await fetch(link);
        const bytes = Buffer.from(await got.arrayBuffer());
        assert.equal(sha256(bytes), done.file?.sha256);
        assert.equal(
          got.headers.get('content-type'),
          (await linked(url, done, {}, '?proxy=true')).headers.get('content-type'),
        );
        assert.match(
          got.headers.get('content-disposition') ?? '',
          new RegExp(`filename="${done.file?.name}"`),
        );
        const streamed = await linked(url, done, {}, '?proxy=true');
        assert.equal(streamed.status, 200);
        assert.ok(Buffer.from(await streamed.arrayBuffer()).equals(bytes));
        // Ranges, in both ways.
        const range = { range: 'bytes=100-199' };
        for (const more of ['', '?proxy=true']) {
          const part = await fetch(`${url}${done.file?.url}${more}`, { headers: range });
          assert.equal(part.status, 206);
          assert.ok(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(100, 200)));
        }
        // Conditions on our tag are answered here.
        const resumed = await linked(url, done, { ...range, 'if-range': etag });
        assert.equal(resumed.status, 206);
        await resumed.arrayBuffer();
        assert.equal((await linked(url, done, { ...range, 'if-range': '"other"' })).status, 307);
        assert.equal((await linked(url, done, { 'if-none-match': etag })).status, 304);
        assert.equal((await linked(url, done, { 'if-match': '"other"' })).status, 412);
        const head = await fetch(`${url}${done.file?.url}`, { method: 'HEAD', redirect: 'manual' });
        assert.equal(head.status, 200);
        assert.equal(head.headers.get('content-length'), String(bytes.length));
        assert.equal(head.headers.get('etag'), etag);
        assert.ok(
          (await fetch(link.replace(/.$/, (last) => (last === '0' ? '1' : '0')))).status === 403,
          'signed',
        );
        assert.equal((await fetch(`${url}/exports/${done.id}`, { method: 'DELETE' })).status, 200);
        assert.deepEqual(await keys(), []);
      }
    });
  },
);

test('with FILES_PROXY the server streams all files, and a link is valid for EXPORT_LINK_TTL', async (t) => {
  const proxied = await inBucket(t, 'sqlite', 'uws', { FILES_PROXY: 'true' });
  if (!proxied) return;
  const { url } = proxied.server;
  const done = await awaited(url, (await order(url, SMALL)).id);
  assert.equal(sha256(await fileOf(url, done)), done.file?.sha256);
  const short = await inBucket(t, 'sqlite', 'uws', { EXPORT_LINK_TTL: '2 s' });
  if (!short) return;
  const other = await awaited(short.server.url, (await order(short.server.url, SMALL)).id);
  const link = (await linked(short.server.url, other)).headers.get('location') ?? '';
  assert.equal((await fetch(link, { method: 'GET' })).status, 200);
  await until(async () => (await fetch(link)).status === 403);
  const again = (await linked(short.server.url, other)).headers.get('location') ?? '';
  assert.notEqual(again, link);
  assert.equal((await fetch(again)).status, 200);
});

test('the key of the API reaches no bucket, and the keys of the bucket reach no client and no log', async (t) => {
  const weed = await seaweed(t);
  if (!weed) return;
  const gateway = await faultyGateway(t, weed.endpoint);
  // By another name of the host, as a bucket has one.
  const FILES = await newFiles(weed, gateway.endpoint.replace('127.0.0.1', 'localhost'));
  const keys = [{ name: 'ada' }, { name: 'eve' }];
  const server = await keyedServer(t, 'sqlite', keys, [], { FILES, ...ADMIN });
  await server.insert(ROWS.slice(0, 10));
  const done = await server.exported('ada', SMALL);
  assert.equal((await server.as('eve', done.file?.url ?? '', { redirect: 'manual' })).status, 404);
  const answer = await server.as('ada', done.file?.url ?? '');
  assert.equal(sha256(Buffer.from(await answer.arrayBuffer())), done.file?.sha256);
  const curl = program(t, ['curl'], ['--version']);
  if (curl === null) return;
  const header = `Authorization: ${bearer('ada').authorization}`;
  const { stdout } = await promisify(execFile)(
    curl,
    ['-sSL', '-H', header, `${server.url}${done.file?.url}`],
    {
      encoding: 'buffer',
    },
  );
  assert.equal(sha256(stdout), done.file?.sha256);
  assert.ok(
    gateway.seen.filter(IS.get).length === 0 &&
      gateway.seen.some(({ url }) => url.includes('X-Amz-Signature')),
  );
  for (const { headers } of gateway.seen) assert.doesNotMatch(JSON.stringify(headers), /secret-of-/);
});

test('while the bucket is away exports wait, /readyz says so, pages and streams go on, and then all are done', async (t) => {
  const opened = await inBucket(t, 'sqlite', 'uws');
  if (!opened) return;
  const { server, gateway } = opened;
  const { url } = server;
  const before = await awaited(url, (await order(url, SMALL)).id);
  gateway.decide = () => 'refuse';
  const ids = await Promise.all([LARGE, SMALL].map(async (body) => (await order(url, body)).id));
  const health = await server.get('/readyz');
  assert.equal(health.status, 200);
  assert.match(
    await health.text(),
    /Exports wait, and their files cannot be had: The bucket of export files cannot be reached/,
  );
  assert.equal((await server.get('/items?limit=1')).status, 200);
  assert.equal((await (await server.get('/items/stream')).text()).split('\n').length, ROWS.length + 1);
  const answer = await linked(url, before, {}, '?proxy=true');
  assert.equal(answer.status, 503);
  gateway.decide = () => null;
  for (const id of ids) {
    const done = await awaited(url, id);
    assert.equal(sha256(await fileOf(url, done)), done.file?.sha256);
  }
  assert.equal(sha256(await fileOf(url, before)), before.file?.sha256, 'what was complete is not lost');
  assert.equal(await (await server.get('/readyz')).text(), '{"status":"ready","reasons":[]}');
});

test('in a bucket that is missing or read only an export fails with the reason', async (t) => {
  const weed = await seaweed(t);
  if (!weed) return;
  for (const [settings, reason] of [
    [{ FILES: filesAt('there-is-none', weed.endpoint), ...ADMIN }, /NoSuchBucket/],
    [{ FILES: await newFiles(weed), ...READER }, /AccessDenied/],
  ] as const) {
    const server = await testServer(t, 'sqlite', 'uws', settings);
    await server.insert(ROWS.slice(0, 10));
    const { id } = await order(server.url, SMALL);
    const failed = await awaited(server.url, id, ({ state }) => state === 'failed');
    assert.equal(failed.problem?.code, 'insufficient-storage');
    assert.match(failed.problem.detail, reason);
    assert.equal((await server.get('/items?limit=1')).status, 200);
  }
});

test('100 exports at once through a bucket that is busy are all whole, and when they are gone nothing is left', async (t) => {
  const opened = await inBucket(t, 'sqlite', 'uws', { EXPORT_LIMIT: '200', EXPORT_CONCURRENCY: '8' });
  if (!opened) return;
  const { server, gateway, keys } = opened;
  let requests = 0;
  gateway.decide = () => (++requests % 7 === 0 ? { status: 503, code: 'SlowDown' } : null);
  const ids: string[] = [];
  for (let n = 0; n < 100; n++) ids.push((await order(server.url, { ...SMALL, min_price: n * 100 })).id);
  for (const id of ids) {
    const done = await awaited(server.url, id);
    const bytes = await (await linked(server.url, done, {}, '?proxy=true')).arrayBuffer();
    assert.equal(sha256(Buffer.from(bytes)), done.file?.sha256);
  }
  assert.equal((await keys()).length, 100);
  for (const id of ids) await fetch(`${server.url}/exports/${id}`, { method: 'DELETE' });
  assert.deepEqual(await keys(), []);
});

test('servers with one store share its files, and one of another store in the same place leaves them alone', async (t) => {
  const weed = await seaweed(t);
  if (!weed) return;
  const settings = { FILES: await newFiles(weed), ...ADMIN };
  const keys = keysAt(t, settings.FILES);
  const one = await testServer(t, 'mongodb', 'uws', settings);
  if (!one) return;
  const done = await awaited(one.url, (await order(one.url, { format: 'csv' })).id);
  const stranger = await testServer(t, 'sqlite', 'uws', settings);
  await stranger.insert(ROWS.slice(0, 10));
  const other = await awaited(stranger.url, (await order(stranger.url, SMALL)).id);
  assert.equal((await keys()).length, 2);
  assert.equal((await fetch(`${stranger.url}/exports/${other.id}`, { method: 'DELETE' })).status, 200);
  assert.equal((await keys()).length, 1);
  assert.equal(sha256(await fileOf(one.url, done)), done.file?.sha256);
});
