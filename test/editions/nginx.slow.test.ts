import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { temporaryFolder } from '../support/directory.ts';
import { documentText } from '../support/papers/documents.ts';
import { freePorts } from '../support/ports.ts';
import { program } from '../support/process/programs.ts';
import { editionServer, IDS, madeEdition, rowsOfIds, writeEditions } from '../support/pull/editions.ts';
import { runPullOf } from '../support/pull/pulling.ts';

const SAMPLE = documentText('docs/ops/nginx-editions.conf');
const EDITION = madeEdition(rowsOfIds(IDS.texts ?? []));
const CHUNKS = [...EDITION.files].filter(([path]) => path.startsWith('chunks/'));
const READERS = 1_000;
const FOREVER = 'public, max-age=31536000, immutable';

/** Starts nginx with the sample: `alone` serves a folder with the edition, `cache` stands before a server on `upstream`. */
async function startNginx(t: TestContext, upstream: string) {
  const nginx = program(t, ['nginx', '/usr/sbin/nginx'], ['-v']);
  if (nginx === null) return null;
  const folder = await temporaryFolder(t);
  await writeEditions(join(folder, 'www/orders'), [EDITION]);
  const [alone = 0, cache = 0] = await freePorts(2);
  const sample = SAMPLE.replace('8080', `127.0.0.1:${alone}`)
    .replace('8081', `127.0.0.1:${cache}`)
    .replace('/var/lib/sluice/editions', join(folder, 'www'))
    .replace('/var/cache/nginx/sluice', join(folder, 'cache'))
    .replaceAll('http://127.0.0.1:3000', upstream);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const file = join(folder, 'conf');
  await writeFile(
    file,
    `daemon off; pid ${folder}/pid; error_log stderr emerg; ${user} events { worker_connections 8192; }
http { access_log off; ${temporary.join(' ')}\n${sample}}\n`,
  );
  const child = spawn(nginx, ['-p', folder, '-c', file], { stdio: ['ignore', 'inherit', 'inherit'] });
  t.after(async () => {
    if (child.exitCode !== null) return;
    const gone = once(child, 'exit');
    child.kill();
    await gone;
  });
  const origins = { alone: `http://127.0.0.1:${alone}`, cache: `http://127.0.0.1:${cache}` };
  for (const origin of Object.values(origins))
    while (!(await fetch(origin).catch(() => null))) {
      assert.equal(child.exitCode, null, 'nginx runs');
      await new Promise(setImmediate);
    }
  return { ...origins, folder };
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

async function contentOf(url: string): Promise<{ readonly status: number; readonly sha: string }> {
  const answer = await fetch(url);
  return { status: answer.status, sha: sha256(new Uint8Array(await answer.arrayBuffer())) };
}

test('nginx serves a folder of editions alone, and says how long each file may be kept', async (t) => {
  const nginx = await startNginx(t, 'http://127.0.0.1:1');
  if (!nginx) return;
  const { edition } = EDITION.head;
  const [chunk = ''] = CHUNKS.map(([path]) => path);
  for (const [path, caching] of [
    ['edition', 'public, max-age=5, stale-while-revalidate=30'],
    [`edition/${edition}`, FOREVER],
    [chunk, FOREVER],
  ] as const) {
    const answer = await fetch(`${nginx.alone}/orders/${path}`);
    assert.equal(answer.status, 200, path);
    assert.equal(answer.headers.get('cache-control'), caching, path);
    assert.equal(answer.headers.get('content-encoding'), null, path);
    const file = EDITION.files.get(path) ?? EDITION.files.get(`${path}.json`);
    assert.equal(sha256(new Uint8Array(await answer.arrayBuffer())), sha256(file ?? new Uint8Array()), path);
  }
  const missing = [
    'orders/chunks/none',
    `orders/edition/${'0'.repeat(64)}`,
    'orders',
    'orders/chunks/',
    'conf',
  ];
  for (const path of missing) {
    const answer = await fetch(`${nginx.alone}/${path}`);
    assert.ok([403, 404].includes(answer.status), `${path}: ${answer.status}`);
    assert.equal(answer.headers.get('cache-control'), null, path);
  }
  const file = join(nginx.folder, 'orders.ndjson');
  const { code, text } = await runPullOf([`${nginx.alone}/orders/edition`, '-o', file]);
  assert.equal(code, 0, text);
  assert.ok((await readFile(file)).equals(EDITION.rows));
});

test('a thousand readers at once behind the cache of nginx are one read of each file', async (t) => {
  const server = await editionServer(t, EDITION);
  server.handle = (request, response) => {
    response.setHeader('cache-control', request.url?.endsWith('/edition') ? 'public, max-age=5' : FOREVER);
    return false;
  };
  const nginx = await startNginx(t, server.origin);
  if (!nginx) return;
  const files = CHUNKS.slice(0, 4);
  const readers = Array.from({ length: READERS }, async () => {
    for (const [path, bytes] of files) {
      const { status, sha } = await contentOf(`${nginx.cache}/orders/${path}`);
      assert.deepEqual({ status, sha }, { status: 200, sha: sha256(bytes) });
    }
  });
  await Promise.all(readers);
  for (const [path] of files)
    assert.equal(server.asked.filter((one) => one === path).length, 1, `${path} is read once`);
  const query = await contentOf(`${nginx.cache}/orders/${files[0]?.[0]}?for=me`);
  assert.equal(query.status, 200);
  assert.equal(server.asked.length, files.length, 'a query makes no other file');
});

test('the cache of nginx keeps no file that was cut, and no error', async (t) => {
  const server = await editionServer(t, EDITION);
  const nginx = await startNginx(t, server.origin);
  if (!nginx) return;
  const [[path, bytes] = ['', new Uint8Array()]] = CHUNKS;
  const url = `${nginx.cache}/orders/${path}`;
  server.handle = (_request, response) => {
    response.writeHead(200, { 'content-length': bytes.length, 'cache-control': FOREVER });
    response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
    return true;
  };
  await assert.rejects(contentOf(url), 'the reader sees the cut');
  server.handle = (_request, response) => {
    response.writeHead(503, { 'cache-control': 'no-store' }).end('{}');
    return true;
  };
  assert.equal((await contentOf(url)).status, 503);
  server.handle = () => false;
  assert.deepEqual(await contentOf(url), { status: 200, sha: sha256(bytes) });
  server.handle = (_request, response) => {
    response.destroy();
    return true;
  };
  assert.deepEqual(await contentOf(url), { status: 200, sha: sha256(bytes) });
});
