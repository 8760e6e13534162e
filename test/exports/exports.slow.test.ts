import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError } from '../../src/base/errors.ts';
import type { Export } from '../../src/exports/export.ts';
import { TEXT_FORMATS } from '../../src/rows/text-files.ts';
import { BSON } from '../../src/store/values/bson.ts';
import { crc32 } from '../../src/pipeline/crc32.ts';
import { COMPRESSIONS } from '../../src/pipeline/pieces.ts';
import { problemOf } from '../support/answers.ts';
import { handleOf, Worker } from '../support/exports/export-worker.ts';
import { awaited, exportedAsStreamed, exportRows, post } from '../support/exports/exports.ts';
import { temporaryFolder } from '../support/directory.ts';
import { openStore } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { serverOn, testServer } from '../support/process/server.ts';

const ROWS = exportRows(6_000); // several pieces

for (const store of ['sqlite', 'mongodb'] as const)
  test(`${store}: an export is the stream of the same query as a file, in each format and compression`, async (t) => {
    const server = await testServer(t, store, 'uws', { EXPORT_LIMIT: '100' });
    if (!server) return;
    await server.insert(ROWS);
    const queries = [
      ...TEXT_FORMATS.flatMap((format) => COMPRESSIONS.map((compression) => ({ format, compression }))),
      {
        sort: 'price_desc',
        min_price: 3,
        category: 'größe',
        fields: ['price', 'name'],
        format: 'csv',
        safe: true,
      },
      { category: 'nothing', format: 'json', compression: 'gzip' },
    ];
    for (const body of queries) {
      const { done, bytes } = await exportedAsStreamed(server.url, body);
      assert.equal(done.consistency, store === 'sqlite' ? 'live' : 'snapshot');
      const { rows, bytes: length, sha256, crc32: crc } = done.file ?? {};
      assert.equal(length, bytes.length);
      assert.equal(sha256, createHash('sha256').update(bytes).digest('hex'));
      assert.equal(crc, crc32(bytes).toString(16).padStart(8, '0'));
      assert.deepEqual(done.progress.rows, rows);
      if (body.format === 'ndjson') assert.equal(rows, ROWS.length);
    }
    await server.close();
    assert.equal(server.slots.taken, 0);
  });

test('an export whose point in time expires while it runs reads the rest of the rows live, and says so', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const handle = await handleOf(await openStore(t, uri));
  const insert = (rows: readonly object[]) =>
    handle.store.items.insert(
      rows.map((row) => BSON.serialize(row)),
      'replace',
    );
  const lineOf = ({ _id, price }: (typeof ROWS)[number]) => `${JSON.stringify({ id: _id, price })}\n`;
  await insert(ROWS);
  const changed = ROWS.map((row) => ({ ...row, price: row.price + 1 }));
  const times = [] as unknown[];
  const since = new Set<unknown>();
  const worker = new Worker(handle, {
    reads: async (_, plan) => {
      if (plan.at === undefined) since.add(plan.since);
      else times.push(plan.at);
      if (plan.at === undefined || times.length < 3) return;
      await insert(changed);
      throw new AppError('snapshot-expired', 'as when the store keeps less');
    },
  });
  const query = 'sort=id_asc&fields=price';
  const request = { resource: 'items', query, format: 'ndjson', compression: 'none' } as const;
  const { id } = await worker.jobs.create('ada', () => Promise.resolve(request), t.signal);
  assert.equal(await worker.work(id), null);
  const job = await worker.jobs.get(id, t.signal);
  assert.equal(job?.progress.time, 'live');
  assert.deepEqual(since, new Set(times), 'live reads see every change before the place of the export');
  const lines = (await worker.textOf(job)).split(/(?<=\n)/);
  const old = ROWS.findIndex((row, n) => lines[n] !== lineOf(row));
  assert.ok(old > 0 && old < ROWS.length, `${old} rows of the snapshot`);
  assert.deepEqual(lines, [...ROWS.slice(0, old), ...changed.slice(old)].map(lineOf));
  await worker.close();
});

test('an export can be ordered, listed, read and removed with its file, and every refusal is a coded problem', async (t) => {
  const DATA_DIR = await temporaryFolder(t);
  const server = await serverOn(t, { DATA_DIR, EXPORT_LIMIT: '3' });
  await server.insert(ROWS.slice(0, 10));
  const refused: [body: object, code: string, pointer: string][] = [
    [{ format: 'xml' }, 'invalid-body', '/format'],
    [{ compression: 'zstd' }, 'invalid-body', '/compression'],
    [{ limit: 7 }, 'invalid-body', '/limit'],
    [{ fields: [] }, 'invalid-body', '/fields'],
    [{ category: 'ö'.repeat(129) }, 'invalid-body', '/category'],
    [{ safe: true }, 'invalid-body', '/safe'],
    [{ sort: 'id_asc', max_price: 3 }, 'invalid-body', '/sort'],
    [{ min_price: '3' }, 'invalid-body', '/min_price'],
  ];
  for (const [body, code, pointer] of refused) {
    const problem = await problemOf(post(server.url, body));
    assert.deepEqual([problem.code, problem.errors?.[0]?.pointer], [code, pointer]);
  }

  const posted = await post(server.url, { min_price: 1 });
  const { id, request } = (await posted.json()) as Export;
  assert.match(id, /^[0-9a-f]{32}$/);
  assert.equal(posted.headers.get('location'), `/exports/${id}`);
  assert.equal(posted.headers.get('retry-after'), '1');
  assert.deepEqual(request, {
    resource: 'items',
    min_price: 1,
    sort: 'price_asc',
    format: 'ndjson',
    compression: 'none',
  });

  const prefer = { Prefer: 'handling=lenient, respond-async; wait=10' };
  const preferred = await server.get('/items/stream?format=csv&safe=true&fields=price', prefer);
  assert.equal(preferred.status, 202);
  assert.equal(preferred.headers.get('preference-applied'), 'respond-async');
  const second = (await preferred.json()) as Export;
  assert.deepEqual(second.request, {
    resource: 'items',
    sort: 'id_asc',
    fields: ['price'],
    format: 'csv',
    compression: 'none',
    safe: true,
  });
  const streamed = await server.get('/items/stream?limit=1', prefer);
  assert.equal(streamed.status, 200, 'limit is for streams only');
  await streamed.text();

  await Promise.all([id, second.id].map((one) => awaited(server.url, one)));
  const list = (await (await server.get('/exports')).json()) as { data: Export[] };
  assert.deepEqual(new Set(list.data.map((one) => one.id)), new Set([id, second.id]));
  assert.equal((await readdir(join(DATA_DIR, 'exports'))).length, 2);

  assert.equal((await post(server.url, {})).status, 202);
  const tooMany = await post(server.url, {});
  assert.ok(tooMany.headers.get('retry-after'));
  const { status, code } = await problemOf(tooMany);
  assert.deepEqual([status, code], [429, 'too-many-exports']);

  const remove = (one: string, headers = {}) =>
    fetch(`${server.url}/exports/${one}`, { method: 'DELETE', headers });
  assert.deepEqual(await (await remove(id)).json(), { id, deleted: true });
  assert.equal((await remove(second.id, { Prefer: 'return=minimal' })).status, 204);
  for (const path of [
    `/exports/${id}`,
    `/exports/${id}/file`,
    '/exports/x',
    '/exports/x/file',
    '/exports/..%2f..',
    `/exports/${id}/other`,
  ])
    assert.equal((await server.get(path)).status, 404, path);
  assert.equal((await remove(id)).status, 404);
  assert.equal((await post(server.url, {})).status, 202, 'there is room again');
  await server.close();
});
