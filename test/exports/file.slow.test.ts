import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { Export } from '../../src/exports/export.ts';
import { withOverrides } from '../support/store/with-overrides.ts';
import type { FileStore } from '../../src/store/files.ts';
import type { Store } from '../../src/store/store.ts';
import { problemOf } from '../support/answers.ts';
import { awaited, exportRows, fileOf, order, post } from '../support/exports/exports.ts';
import { smallDisk } from '../support/faults/small-disk.ts';
import { until } from '../support/store/changes.ts';
import { temporaryFolder } from '../support/directory.ts';
import { serverOn, testServer, type TestServer } from '../support/process/server.ts';

const run = promisify(execFile);

for (const engine of ['uws', 'node'] as const)
  test(`${engine}: a file has a length, a strong ETag and a digest, and serves any byte range`, async (t) => {
    const server = await testServer(t, 'sqlite', engine);
    await server.insert(exportRows(9_000));
    const { id } = await order(server.url, {});
    const done = await awaited(server.url, id);
    const whole = await fileOf(server.url, done);
    const path = `/exports/${id}/file`;
    const size = whole.length;
    const etag = `"${done.file?.sha256 ?? ''}"`;
    const digest = `sha-256=:${createHash('sha256').update(whole).digest('base64')}:`;

    const head = await fetch(server.url + path, { method: 'HEAD' });
    assert.deepEqual(
      [
        'content-length',
        'etag',
        'repr-digest',
        'accept-ranges',
        'content-encoding',
        'content-disposition',
      ].map((name) => head.headers.get(name)),
      [String(size), etag, digest, 'bytes', null, `attachment; filename="${done.file?.name ?? ''}"`],
    );

    const ranges: [range: string, from: number, to: number][] = [
      ['bytes=0-0', 0, 1],
      ['bytes=1-70000', 1, 70_001],
      [`bytes=${size - 5}-`, size - 5, size],
      [`bytes=100-${size + 100}`, 100, size],
      ['bytes=-7', size - 7, size],
      [`bytes=-${size + 1}`, 0, size],
    ];
    for (const [range, from, to] of ranges) {
      const part = await server.get(path, { range });
      assert.equal(part.status, 206, range);
      assert.equal(part.headers.get('content-range'), `bytes ${from}-${to - 1}/${size}`);
      assert.equal(part.headers.get('content-length'), String(to - from));
      assert.equal(part.headers.get('repr-digest'), digest, 'of the whole file');
      assert.ok(Buffer.from(await part.arrayBuffer()).equals(whole.subarray(from, to)), range);
    }
    for (const range of ['bytes=5-4', 'bytes=a-b', 'bytes=-', 'rows=0-1', 'bytes=0-1,3-4']) {
      const all = await server.get(path, { range });
      assert.equal(all.status, 200, range);
      assert.equal((await all.arrayBuffer()).byteLength, size);
    }
    for (const range of [`bytes=${size}-`, 'bytes=-0']) {
      const beyond = await server.get(path, { range });
      assert.equal(beyond.headers.get('content-range'), `bytes */${size}`);
      const { status, code } = await problemOf(beyond);
      assert.deepEqual([status, code], [416, 'range-not-satisfiable'], range);
    }
    const conditions: [headers: Record<string, string>, status: number][] = [
      [{ range: 'bytes=0-9', 'if-range': etag }, 206],
      [{ range: 'bytes=0-9', 'if-range': '"other"' }, 200],
      [{ range: 'bytes=0-9', 'if-range': 'Sat, 21 Nov 2026 12:00:00 GMT' }, 200],
      [{ range: 'bytes=0-9', 'if-none-match': etag }, 304],
      [{ 'if-match': '"other"' }, 412],
      [{ 'accept-encoding': 'br, gzip' }, 200],
    ];
    for (const [headers, status] of conditions) {
      const answer = await server.get(path, headers);
      assert.equal(answer.status, status, JSON.stringify(headers));
      assert.equal(answer.headers.get('content-encoding'), null);
      await answer.arrayBuffer();
    }
    assert.equal((await server.get('/livez')).status, 200);
  });

for (const engine of ['uws', 'node'] as const)
  test(`${engine}: clients that resume or download in parallel get the right bytes`, async (t) => {
    const server = await testServer(t, 'sqlite', engine);
    await server.insert(exportRows(30_000));
    const { id } = await order(server.url, {});
    const whole = await fileOf(server.url, await awaited(server.url, id));
    const url = `${server.url}/exports/${id}/file`;
    const folder = await temporaryFolder(t);
    const file = join(folder, 'file');
    await run('curl', ['-sS', '-o', file, url]);
    await truncate(file, 123_457);
    await run('curl', ['-sS', '-C', '-', '-o', file, url]);
    assert.ok((await readFile(file)).equals(whole), 'curl -C -');
    // At 20 MB/s the server has to wait for the reader.
    await run('curl', ['-sS', '--limit-rate', '20M', '-o', file, url]);
    assert.ok((await readFile(file)).equals(whole), 'a slow reader');
    if (spawnSync('aria2c', ['--version']).error) {
      if (process.env.REQUIRE_ALL) throw new Error('REQUIRE_ALL is set, but there is no aria2c');
      t.diagnostic('aria2c is not there: not tried');
      return;
    }
    await run('aria2c', ['-q', '-x8', '-s8', '-k1M', '-d', folder, '-o', 'parallel', url]);
    assert.ok((await readFile(join(folder, 'parallel'))).equals(whole), 'aria2c -x8');
  });

test('a file that is removed during a request is not found, and a lost file fails its export: 410', async (t) => {
  const meanwhile: { work: () => Promise<unknown> } = { work: () => Promise.resolve() };
  const size: FileStore['size'] = async (name) => {
    await meanwhile.work();
    return stored.size(name);
  };
  let stored: FileStore;
  const tapStore = (store: Store): Store => {
    stored = store.files;
    return withOverrides(store, { files: withOverrides(store.files, { size }) });
  };
  const server = await serverOn(t, { MONGODB_URI: '' }, { tapStore });
  await server.insert(exportRows(10));
  const { id } = await awaited(server.url, (await order(server.url, {})).id);
  const lost = await awaited(server.url, (await order(server.url, {})).id);
  meanwhile.work = () => fetch(`${server.url}/exports/${id}`, { method: 'DELETE' });
  assert.equal((await problemOf(server.get(`/exports/${id}/file`))).code, 'not-found');
  meanwhile.work = async () => {
    for (const name of await server.store.files.names()) await server.store.files.remove(name);
  };
  await assertLost(server, lost.id, await server.get(`/exports/${lost.id}/file`));
});

/** Asserts that `answer` and every later one say that the file is lost, and that the export failed. */
async function assertLost(server: TestServer, id: string, answer?: Response): Promise<void> {
  for (const one of [
    answer ?? (await server.get(`/exports/${id}/file`)),
    await server.get(`/exports/${id}/file`),
  ]) {
    const { status, code } = await problemOf(one);
    assert.deepEqual([status, code], [410, 'export-file-lost']);
  }
  const { state, problem } = await awaited(server.url, id, () => true);
  assert.deepEqual([state, problem?.code], ['failed', 'export-file-lost']);
}

for (const name of ['sqlite', 'mongodb'] as const)
  test(`${name}: a file whose bytes changed is cut before its end, and a range of all of it, too; then it is lost`, async (t) => {
    const server = await testServer(t, name, 'uws');
    if (!server) return;
    await server.insert(exportRows(9_000));
    const lose = async (damage: (file: string) => Promise<unknown>) => {
      const done = await awaited(server.url, (await order(server.url, {})).id);
      const { bytes = 0 } = done.file ?? {};
      const stored = (await server.store.files.names(done.id))[0] ?? '';
      await damage(stored);
      return { id: done.id, path: `/exports/${done.id}/file`, bytes };
    };
    const flipped = (at: number) => (file: string) => rewrite(server, file, (whole) => flip(whole, at));
    for (const [at, range] of [
      [0, undefined],
      [1_000_000, 'bytes=0-'],
      [-1, undefined],
    ] as const) {
      const { id, path, bytes } = await lose(flipped(at));
      const part = await server.get(path, { range: 'bytes=5-9' });
      assert.deepEqual(
        [part.status, (await part.arrayBuffer()).byteLength],
        [206, 5],
        'a part proves nothing',
      );
      const answer = await server.get(path, range === undefined ? {} : { range });
      assert.equal(answer.headers.get('content-length'), String(bytes));
      await assert.rejects(answer.arrayBuffer());
      await assertLost(server, id);
    }
    const cut = await lose((file) => rewrite(server, file, (whole) => whole.subarray(0, -1)));
    await assertLost(server, cut.id);
  });

function flip(bytes: Buffer, at: number): Buffer {
  const place = at < 0 ? bytes.length + at : at;
  bytes[place] = (bytes[place] ?? 0) ^ 1;
  return bytes;
}

/** Replaces a finished file by what `change` makes of its bytes. */
async function rewrite(
  { store }: TestServer,
  name: string,
  change: (whole: Buffer) => Buffer,
): Promise<void> {
  const length = (await store.files.size(name)) ?? 0;
  const chunks: Buffer[] = [];
  for await (const chunk of store.files.read(name, 0, length)) chunks.push(Buffer.from(chunk));
  const writer = await store.files.create(name);
  await writer.write(change(Buffer.concat(chunks)));
  await writer.finish();
}

test('a disk that is full in mid-file, or at any step of a file, fails the export with its reason, leaves nothing over, and takes it when there is room', async (t) => {
  const disk = 3_000_000;
  const DATA_DIR = await smallDisk(t, disk, 'exports');
  if (DATA_DIR === null) return;
  const files = join(DATA_DIR, 'exports');
  const server = await serverOn(t, { MONGODB_URI: '', DATA_DIR });
  await server.insert(exportRows(15_000));
  const body = { compression: 'none', fields: ['price', 'note'] };
  const made = async () => {
    const { id, file } = await awaited(server.url, (await order(server.url, body)).id);
    await fetch(`${server.url}/exports/${id}`, { method: 'DELETE' });
    return file;
  };
  const expected = await made();
  const bytes = expected?.bytes ?? 0;
  for (const room of [0, 4_096, bytes / 2, bytes - 4_096]) {
    await writeFile(join(files, 'filler'), Buffer.alloc(disk - room));
    const { id } = await order(server.url, body);
    const { state, problem } = await awaited(server.url, id, ({ finishedAt }) => finishedAt !== undefined);
    assert.deepEqual(
      [state, problem?.code, problem?.status],
      ['failed', 'insufficient-storage', 507],
      `room for ${room} bytes`,
    );
    const missing = await problemOf(server.get(`/exports/${id}/file`));
    assert.equal(missing.status, 409);
    assert.match(missing.detail, /failed: The disk/);
    assert.deepEqual(await readdir(files), ['filler']);
    await rm(join(files, 'filler'));
    assert.equal((await made())?.sha256, expected?.sha256);
    assert.deepEqual(await readdir(files), []);
  }
  await server.close();
});

test('a directory of files that cannot be written stops the start, and fails an export with its reason', async (t) => {
  const DATA_DIR = await smallDisk(t, 3_000_000, 'exports');
  if (DATA_DIR === null) return;
  const files = join(DATA_DIR, 'exports');
  const remount = (how: 'ro' | 'rw') => spawnSync('mount', ['-o', `remount,${how}`, files]);
  const server = await serverOn(t, { MONGODB_URI: '', DATA_DIR });
  await server.insert(exportRows(10));
  remount('ro');
  const { id } = await order(server.url, {});
  const { problem } = await awaited(server.url, id, ({ state }) => state === 'failed');
  assert.equal(problem?.code, 'insufficient-storage');
  assert.match(problem.detail, /cannot be written.*EROFS/);
  await server.close();
  await assert.rejects(serverOn(t, { MONGODB_URI: '', DATA_DIR }), /exports.*cannot be written.*EROFS/);
  remount('rw');
  await (await serverOn(t, { MONGODB_URI: '', DATA_DIR })).close();
});

test('a running export is cancelled at once, and an expired one is removed with its file', async (t) => {
  const DATA_DIR = await temporaryFolder(t);
  const server = await serverOn(t, { MONGODB_URI: '', DATA_DIR, EXPORT_TTL: '1 s', EXPORT_CONCURRENCY: '1' });
  await server.insert(exportRows(60_000));
  const ids = [];
  for (const compression of ['br', 'gzip']) ids.push((await order(server.url, { compression })).id);
  for (const id of ids) {
    const answer = await fetch(`${server.url}/exports/${id}`, { method: 'DELETE' });
    assert.equal(((await answer.json()) as Export).state, 'cancelled');
  }
  const { id } = await order(server.url, { min_price: 24_000 });
  await awaited(server.url, id);
  await until('it expired', async () => (await server.get(`/exports/${id}`)).status === 404);
  const files = () => readdir(join(DATA_DIR, 'exports'));
  await until('its file is removed', async () => (await files()).length === 0);
  assert.equal((await post(server.url, {})).status, 202);
  await server.close();
  assert.equal(server.slots.taken, 0);
});
