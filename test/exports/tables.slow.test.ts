import assert from 'node:assert/strict';
import Module from 'node:module';
import { test } from 'node:test';
import { crc32, gunzipSync } from 'node:zlib';
import { readParquet } from 'parquet-wasm';
import type { Export } from '../../src/exports/export.ts';
import { arrowMessages } from '../support/resources/arrow.ts';
import { awaited, exportRows, fileOf, order, post } from '../support/exports/exports.ts';
import { testServer, type TestServer } from '../support/process/server.ts';

const ROWS = exportRows(6_000); // several record batches
const STORES = ['sqlite', 'mongodb'] as const;
const COLUMNS = 'id:text,category:text,price:double,name:text,note:text,more:json';

interface End {
  readonly rows: number;
  readonly bytes: number;
  readonly crc32: string;
}

async function exported(server: TestServer, body: object): Promise<{ done: Export; bytes: Buffer }> {
  const { id } = await order(server.url, body);
  const done = await awaited(server.url, id);
  return { done, bytes: await fileOf(server.url, done) };
}

const hexOf = (crc: number) => crc.toString(16).padStart(8, '0');

/** Reads a file in Arrow, with all its proofs. */
function proved(bytes: Buffer): { readonly schema: string | undefined; readonly end: End } {
  const [schema, ...batches] = arrowMessages(bytes);
  let size = 0;
  let crc = 0;
  for (const [n, { metadata, body }] of batches.entries()) {
    const proof = JSON.parse(
      metadata.get(n === batches.length - 1 ? 'sluice.end' : 'sluice.checkpoint') ?? '',
    ) as End;
    size += body.length;
    crc = crc32(body, crc);
    assert.deepEqual([proof.bytes, proof.crc32], [size, hexOf(crc)], `record batch ${n}`);
    if (n === batches.length - 1) return { schema: schema?.metadata.get('sluice.columns'), end: proof };
  }
  throw new Error('no record batch');
}

/** The rows of a file in Parquet, those of each row group, and what its metadata say. */
function parquetOf(bytes: Buffer) {
  const table = readParquet(new Uint8Array(bytes), { batchSize: 1 << 20 });
  const batches = table.recordBatches();
  return {
    columns: String(table.schema.metadata().get('sluice.columns')),
    rows: batches.reduce((sum, batch) => sum + batch.numRows, 0),
  };
}

for (const store of STORES) {
  test(`${store}: an export in Arrow is one stream with the columns of the stream, and ends with its proof`, async (t) => {
    const server = await testServer(t, store, 'uws');
    if (!server) return;
    await server.insert(ROWS);
    const { done, bytes } = await exported(server, { format: 'arrow' });
    assert.match(done.file?.name ?? '', /^items-[0-9a-f]{8}\.arrows$/);
    const { schema, end } = proved(bytes);
    assert.equal(schema, COLUMNS);
    assert.equal(end.rows, ROWS.length);
    const head = await server.get(done.file?.url ?? '');
    assert.equal(head.headers.get('content-type'), 'application/vnd.apache.arrow.stream');
    await head.body?.cancel();

    const packed = await exported(server, { format: 'arrow', compression: 'gzip' });
    assert.match(packed.done.file?.name ?? '', /\.arrows\.gz$/);
    assert.ok(gunzipSync(packed.bytes).equals(bytes));

    const body = { format: 'arrow', category: 'none', fields: ['price'], schema: 'strict' };
    const none = proved((await exported(server, body)).bytes);
    assert.deepEqual([none.schema, none.end.rows], ['id:json,price:json', 0]);
    await server.close();
    assert.equal(server.slots.taken, 0);
  });

  test(`${store}: an export in Parquet has all rows and their columns, and is read by ranges`, async (t) => {
    const server = await testServer(t, store, 'uws');
    if (!server) return;
    await server.insert(ROWS);
    const { done, bytes } = await exported(server, { format: 'parquet' });
    assert.match(done.file?.name ?? '', /^items-[0-9a-f]{8}\.parquet$/);
    const { rows, columns } = parquetOf(bytes);
    assert.deepEqual([rows, columns], [ROWS.length, COLUMNS]);
    const url = done.file?.url ?? '';
    const head = await fetch(server.url + url, { method: 'HEAD' });
    assert.equal(head.headers.get('content-type'), 'application/vnd.apache.parquet');
    assert.equal(head.headers.get('content-length'), String(bytes.length));
    assert.equal(head.headers.get('accept-ranges'), 'bytes');
    const last = await server.get(url, { range: 'bytes=-4', 'if-range': head.headers.get('etag') ?? '' });
    assert.deepEqual([last.status, await last.text()], [206, 'PAR1']);

    const body = { format: 'parquet', category: 'none', columns: 'id:text,price:integer' };
    const none = parquetOf((await exported(server, body)).bytes);
    assert.deepEqual([none.rows, none.columns], [0, 'id:text,price:integer']);
    await server.close();
    assert.equal(server.slots.taken, 0);
  });
}

test('an order of a table that cannot be written is refused, and each fault is named', async (t) => {
  const server = await testServer(t, 'sqlite', 'node');
  const refused: [body: object, pointer: string, detail: RegExp][] = [
    [
      { format: 'parquet', compression: 'gzip' },
      '/compression',
      /expected none .*compressed inside; got gzip/,
    ],
    [
      { format: 'arrow', compression: 'br' },
      '/compression',
      /expected none or gzip with format arrow; got br/,
    ],
    [{ format: 'csv', columns: 'id:text' }, '/columns', /requires format=arrow/],
    [{ schema: 'strict' }, '/schema', /requires format=arrow; .*ndjson/],
    [{ format: 'arrow', columns: 'id' }, '/columns', /names and kinds/],
    [{ format: 'arrow', columns: '_rest:json' }, '/columns', /names and kinds/],
    [{ format: 'arrow', schema: 'loose' }, '/schema', /one of open, strict/],
    [{ format: 'arrow', fields: ['a'], columns: 'id:text,b:text' }, '/columns', /different columns/],
    [{ format: 'parquet', safe: true }, '/safe', /requires format=csv/],
  ];
  for (const [body, pointer, detail] of refused) {
    const answer = await post(server.url, body);
    const { errors } = (await answer.json()) as { errors: { pointer: string; detail: string }[] };
    assert.deepEqual([answer.status, errors[0]?.pointer], [422, pointer], JSON.stringify(body));
    assert.match(errors[0]?.detail ?? '', detail);
  }
});

test('without its package, Parquet is refused at the order, with the command that installs it', async (t) => {
  const server = await testServer(t, 'sqlite', 'node');
  type Resolving = Record<'_resolveFilename', (name: string, ...more: unknown[]) => string>;
  const modules = Module as unknown as Resolving;
  const resolve = modules._resolveFilename.bind(Module);
  t.mock.method(modules, '_resolveFilename', (name: string, ...more: unknown[]) => {
    if (name !== 'parquet-wasm') return resolve(name, ...more);
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
  });
  const answer = await post(server.url, { format: 'parquet' });
  assert.equal(answer.status, 422);
  const { code, errors } = (await answer.json()) as Record<'code', string> & { errors: object[] };
  assert.equal(code, 'invalid-body');
  assert.match(JSON.stringify(errors), /"\/format".*npm install parquet-wasm/);
  assert.equal((await post(server.url, { format: 'arrow' })).status, 202);
});

test('an export with schema strict fails at once at a value that fits no column, and names its row', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws');
  await server.insert([
    { _id: 'a', category: 'x', price: 1 },
    { _id: 'odd', category: 'x', price: 1.5 },
  ]);
  const columns = 'id:text,category:text,price:integer';
  for (const format of ['arrow', 'parquet']) {
    const { id } = await order(server.url, { format, columns, schema: 'strict' });
    const { state, problem } = await awaited(server.url, id, ({ finishedAt }) => finishedAt !== undefined);
    assert.equal(state, 'failed');
    assert.equal(problem?.code, 'invalid-body');
    assert.match(problem.detail, /"odd".*fits no column/);
    const { bytes } = await exported(server, { format, columns });
    assert.equal(format === 'arrow' ? proved(bytes).end.rows : parquetOf(bytes).rows, 2);
  }
});
