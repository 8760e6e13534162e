import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type * as client from '../../clients/javascript/sluice.ts';
import type { Export } from '../../src/exports/export.ts';
import { bearer, keyedServer, type KeyedServer } from '../support/access/keyed.ts';
import { temporaryFolder } from '../support/directory.ts';
import { exportRows, order } from '../support/exports/exports.ts';
import { runPullOf, scriptedServer } from '../support/pull/pulling.ts';
import { newFiles, spoil } from '../support/store/bucket/bucket.ts';
import { faultyGateway, type Fault, type FaultyGateway } from '../support/store/bucket/gateway.ts';
import { ADMIN, Seaweed } from '../support/store/bucket/seaweed.ts';
import { shared } from '../support/tests-with.ts';

/** The file that the server hands out. */
const BUILT = join(import.meta.dirname, '../../src/web/clients/sluice.mjs');
const PYTHON = join(import.meta.dirname, '../../clients/python/src');
const { download } = (await import(pathToFileURL(BUILT).href)) as typeof client;

const ROWS = exportRows(20_000);
const JSON_TYPE = { 'content-type': 'application/json' };
const ORDER = { format: 'ndjson', compression: 'none' };
const seaweed = shared((t) => Seaweed.start(t));
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

interface Client {
  readonly name: string;
  /** Rejects with the reason why there is no file. */
  readonly get: (t: TestContext, url: string, key: string) => Promise<Buffer>;
}

const CLIENTS: readonly Client[] = [
  {
    name: 'sluice pull',
    get: async (t, url, key) => {
      const folder = await temporaryFolder(t);
      await writeFile(join(folder, 'key'), `${key}\n`);
      const output = join(folder, 'a.file');
      const argv = ['--export', url, '-o', output, '--key-file', join(folder, 'key'), '--retry-for', '60'];
      const { code, text } = await runPullOf(argv);
      const left = (await readdir(folder)).sort();
      assert.deepEqual(left, code === 0 ? ['a.file', 'key'] : ['key'], text);
      if (code !== 0) throw new Error(text);
      return readFile(output);
    },
  },
  {
    name: 'Python',
    get: async (t, url, key) => {
      const output = join(await temporaryFolder(t), 'a.file');
      const program =
        'import sys, sluice_client; sluice_client.download(sys.argv[1], sys.argv[2], key=sys.argv[3])';
      const env = { ...process.env, PYTHONPATH: PYTHON };
      await promisify(execFile)('python3', ['-c', program, url, output, key], { env });
      assert.deepEqual(await readdir(dirname(output)), ['a.file']);
      return readFile(output);
    },
  },
  {
    name: 'sluice.mjs',
    get: async (_, url, key) => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of download(url, { key, retryFor: 60 })) chunks.push(chunk);
      return Buffer.concat(chunks);
    },
  },
];

const keyOf = (name: string) => bearer(name).authorization.replace('Bearer ', '');

interface Opened {
  readonly server: KeyedServer;
  readonly gateway: FaultyGateway;
  readonly FILES: string;
}

async function inBucket(t: TestContext, settings: Record<string, string> = {}): Promise<Opened | null> {
  const weed = await seaweed(t);
  if (!weed) return null;
  const gateway = await faultyGateway(t, weed.endpoint);
  const FILES = await newFiles(weed, gateway.endpoint);
  const items = { name: 'items', rows: ROWS, indexes: [] };
  const server = await keyedServer(t, 'sqlite', [{ name: 'ada' }], [items], { FILES, ...ADMIN, ...settings });
  return { server, gateway, FILES };
}

async function exported(server: KeyedServer): Promise<Export> {
  return server.exported('ada', ORDER);
}

/** The requests that followed a link. */
const linked = ({ seen }: FaultyGateway) => seen.filter(({ url }) => url.includes('X-Amz-Signature='));

for (const { name, get } of CLIENTS) {
  test(`${name} waits for an export and downloads its file from the store of the server`, async (t) => {
    for (const HTTP_ENGINE of ['uws', 'node']) {
      const items = { name: 'items', rows: ROWS, indexes: [] };
      const server = await keyedServer(t, 'sqlite', [{ name: 'ada' }], [items], { HTTP_ENGINE });
      const { id } = await order(server.url, ORDER, bearer('ada'));
      const bytes = await get(t, `${server.url}/exports/${id}`, keyOf('ada'));
      const done = await exported(server);
      assert.equal(sha256(bytes), done.file?.sha256);
      assert.equal((await get(t, `${server.url}${done.file?.url}`, keyOf('ada'))).length, bytes.length);
      await assert.rejects(get(t, `${server.url}/exports/${id}`, 'another'), /401/);
    }
  });

  test(`${name} follows the link to a bucket without the key, through cuts and links that have ended`, async (t) => {
    const opened = await inBucket(t);
    if (!opened) return;
    const { server, gateway } = opened;
    const done = await exported(server);
    const faults: (Fault | null)[] = [
      'cut-answer',
      { status: 403, code: 'AccessDenied' },
      { status: 503, code: 'SlowDown' },
      'refuse',
      'cut-answer',
    ];
    gateway.decide = ({ url }) => (url.includes('X-Amz-Signature=') ? (faults.shift() ?? null) : null);
    gateway.seen.length = 0;
    const bytes = await get(t, `${server.url}/exports/${done.id}`, keyOf('ada'));
    assert.equal(sha256(bytes), done.file?.sha256);
    assert.equal(faults.length, 0);
    const asked = linked(gateway);
    assert.equal(asked.length, 6);
    const metrics = await (await server.as('ada', '/metrics')).text();
    assert.match(metrics, /sluice_requests_total\{route="\/exports\/\{id\}\/file",[^}]*status="307"\} 6\n/);
    const [first, second] = asked;
    assert.equal(first?.headers.range, undefined);
    assert.match(String(second?.headers.range), /^bytes=[1-9]\d+-$/);
    assert.match(String(second?.headers['if-range']), /^"[0-9a-f-]+"$/);
    assert.doesNotMatch(JSON.stringify(gateway.seen), new RegExp(keyOf('ada')));
    for (const { headers } of asked) assert.equal(headers.authorization, undefined);
  });

  test(`${name} gets a file of a bucket through the server`, async (t) => {
    const opened = await inBucket(t);
    if (!opened) return;
    const { server, gateway } = opened;
    const done = await exported(server);
    const bytes = await get(t, `${server.url}${done.file?.url}?proxy=true`, keyOf('ada'));
    assert.equal(sha256(bytes), done.file?.sha256);
    assert.deepEqual(linked(gateway), []);
  });

  test(`${name} refuses a file whose bytes are not those of the export`, async (t) => {
    const opened = await inBucket(t);
    if (!opened) return;
    const { server, FILES } = opened;
    const done = await exported(server);
    await spoil(FILES);
    await assert.rejects(
      get(t, `${server.url}/exports/${done.id}`, keyOf('ada')),
      /not the file of the export/,
    );
  });

  test(`${name} follows no redirect but that of a file, and none twice`, async (t) => {
    const seen: (string | undefined)[] = [];
    const { url: elsewhere } = await scriptedServer(t, [
      (request, response) => {
        seen.push(request.headers.authorization);
        response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end();
      },
    ]);
    const file = { bytes: 10, rows: 1, sha256: '0'.repeat(64) };
    const complete: RequestListener = (_, response) =>
      response.writeHead(200, JSON_TYPE).end(JSON.stringify({ id: '1', state: 'complete', file }));
    const leads = (status: number, location: string): RequestListener => {
      return (_, response) => response.writeHead(status, { location }).end();
    };
    const { url } = await scriptedServer(t, [
      leads(307, elsewhere),
      ...[complete, leads(307, elsewhere)],
      ...[complete, leads(302, elsewhere)],
      ...[complete, leads(307, 'file:///etc/passwd')],
    ]);
    const one = new URL('/exports/1', url).href;
    await assert.rejects(get(t, one, 'secret'), /redirect/);
    assert.deepEqual(seen, [], 'a state is answered by the server itself');
    await assert.rejects(get(t, one, 'secret'), /the object store answered with a redirect/);
    assert.deepEqual(seen, [undefined]);
    await assert.rejects(get(t, one, 'secret'), /302/);
    await assert.rejects(get(t, one, 'secret'), /a link that is none/);
    assert.equal(seen.length, 1);
  });
}

test('the state of an export that has failed is told, and a URL of something else is refused', async (t) => {
  const failed = { id: '1', state: 'failed', problem: { detail: 'The disk is full.' } };
  const { url } = await scriptedServer(t, [
    (_, response) => response.writeHead(200, JSON_TYPE).end(JSON.stringify(failed)),
  ]);
  for (const { get } of CLIENTS)
    await assert.rejects(
      get(t, new URL('/exports/1', url).href, 'key'),
      /the export is failed[.:] The disk is full/,
    );
  await assert.rejects(async () => {
    for await (const chunk of download(url)) assert.fail(String(chunk));
  }, TypeError);
});

test('a pull of an export that is stopped goes on where it was, and another pull of the same file is refused', async (t) => {
  const opened = await inBucket(t);
  if (!opened) return;
  const { server, gateway } = opened;
  const done = await exported(server);
  const folder = await temporaryFolder(t);
  const output = join(folder, 'a.ndjson');
  const key = join(folder, 'key');
  await writeFile(key, keyOf('ada'));
  const argv = (id: string) => ['--export', `${server.url}/exports/${id}`, '-o', output, '--key-file', key];
  const stop = new AbortController();
  let cuts = 0;
  gateway.decide = ({ url }) => {
    if (!url.includes('X-Amz-Signature=')) return null;
    if (++cuts === 2) stop.abort();
    return 'cut-answer';
  };
  assert.equal((await runPullOf(argv(done.id), { signal: stop.signal })).code, 1);
  assert.deepEqual((await readdir(folder)).sort(), ['a.ndjson.part', 'a.ndjson.part.state', 'key']);
  gateway.decide = () => null;
  const other = await exported(server);
  const refused = await runPullOf(argv(other.id));
  assert.match(refused.text, /belongs to a pull of .*: --restart discards it/);
  gateway.seen.length = 0;
  const { code, text } = await runPullOf(argv(done.id));
  assert.equal(code, 0, text);
  assert.match(text, /continuing after/);
  assert.match(String(linked(gateway)[0]?.headers.range), /^bytes=[1-9]/);
  assert.equal(sha256(await readFile(output)), done.file?.sha256);
  assert.equal((await runPullOf([...argv(other.id), '--restart'])).code, 0);
  assert.deepEqual((await readdir(folder)).sort(), ['a.ndjson', 'key']);
});
