import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { parseImportArguments, runImport } from '../../src/import/command.ts';
import { textOf } from '../support/answers.ts';
import { targetOf } from '../support/import/import-store.ts';
import { Decimal128, type Document } from '../../src/store/values/bson.ts';
import { openChromium, openTab } from '../support/web/chromium.ts';
import { Kept } from '../support/pull/pulling.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';
import { onServers } from '../support/process/each-server.ts';

/** Documents, some with a top-level field `id` of their own: after other fields, of several types, and before the key. */
function documents(count: number): Document[] {
  return Array.from({ length: count }, (_, n) => {
    const key = `k${String(n).padStart(4, '0')}`;
    const rest = { category: 'c', price: n / 4, nested: { id: n, _id: 'inner' } };
    switch (n % 4) {
      case 0:
        return { _id: key, id: `own ${n}`, ...rest };
      case 1:
        return { _id: key, ...rest, id: n };
      case 2:
        return { _id: key, ...rest };
      default:
        return { id: { deep: [n] }, ...rest, _id: key };
    }
  });
}

/** The JSON form of a document: its key first, as `id`, or as `_id` when the document has a field `id`. */
function shown({ _id, ...others }: Document): Document {
  return 'id' in others ? { _id: _id as unknown, ...others } : { id: _id as unknown, ...others };
}

function linesOf(text: string): Document[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Document);
}

/** The rows as texts, so that a comparison includes the order of members. */
function texts(rows: readonly Document[]): string[] {
  return rows.map((row) => JSON.stringify(row));
}

async function imported(server: TestServer, content: string, ...options: string[]): Promise<void> {
  const io = {
    stdin: Readable.from([Buffer.from(content)]),
    stderr: new Kept(),
    isTTY: false,
    place: 'here',
  };
  const command = parseImportArguments(['-', '--into', 'items', '--format', ...options]);
  const code = await runImport(command, targetOf(server.store.items), {
    ...io,
    signal: new AbortController().signal,
  });
  assert.equal(code, 0, io.stderr.bytes.toString());
}

onServers('stores', (test) => {
  const rows = documents(2500);
  const expected = texts(rows.map(shown));

  test('a document with its own id has the key _id in pages, as a single item and in streams', async (server) => {
    await server.insert(rows);
    const { data } = JSON.parse(await textOf(server.get('/items?limit=1000'))) as { data: Document[] };
    assert.deepEqual(texts(data), expected.slice(0, 1000));
    for (let n = 0; n < 4; n++) assert.equal(await textOf(server.get(`/items/k000${n}`)), expected[n]);
    assert.equal(await textOf(server.get('/items/stream')), expected.map((row) => `${row}\n`).join(''));
    assert.equal(await textOf(server.get('/items/stream?format=json')), `[${expected.join(',')}]\n`);
    const byPrice = await textOf(server.get('/items/stream?sort=price_desc'));
    assert.deepEqual(texts(linesOf(byPrice)), expected.toReversed());
  });

  test('fields does not change the name of the key, and fields=id selects the key and the own id', async (server) => {
    await server.insert(rows.slice(0, 4));
    const selected = async (fields: string) =>
      linesOf(await textOf(server.get(`/items/stream?fields=${fields}`)));
    assert.deepEqual((await selected('price')).slice(0, 3), [
      { _id: 'k0000', price: 0 },
      { _id: 'k0001', price: 0.25 },
      { id: 'k0002', price: 0.5 },
    ]);
    const both = [
      { _id: 'k0000', id: 'own 0' },
      { _id: 'k0001', id: 1 },
      { id: 'k0002' },
      { _id: 'k0003', id: { deep: [3] } },
    ];
    assert.deepEqual(await selected('id'), both);
    const { data } = JSON.parse(await textOf(server.get('/items?fields=id'))) as { data: Document[] };
    assert.deepEqual(data, both);
  });

  test('a stream resumes after any row by its key, and its rows differ from control lines', async (server) => {
    await server.insert(rows);
    const lines = (await textOf(server.get('/items/stream?checkpoints=true'))).split('\n').slice(0, -1);
    const rowLines = lines.filter((line) => line.startsWith('{"id":') || line.startsWith('{"_id":'));
    assert.deepEqual(rowLines, expected);
    assert.ok(lines.length > rowLines.length);
    const rest = await textOf(server.get('/items/stream?sort=price_asc&after=0.75,k0003&limit=2'));
    assert.deepEqual(texts(linesOf(rest)), expected.slice(4, 6));
  });

  test('CSV has the key in column _id and the own id in column id, and fields selects columns by name alone', async (server) => {
    await server.insert(rows);
    const csv = await textOf(server.get('/items/stream?format=csv'));
    assert.equal(csv.slice(0, csv.indexOf('\r\n')), '_id,id,category,price,nested');
    const table = (fields: string) => textOf(server.get(`/items/stream?format=csv&limit=3&fields=${fields}`));
    assert.equal(await table('price,_id'), 'price,_id\r\n0,k0000\r\n0.25,k0001\r\n0.5,k0002\r\n');
    assert.equal(await table('_id,id'), '_id,id\r\nk0000,own 0\r\nk0001,1\r\nk0002,\r\n');
    assert.equal(await table('id'), 'id\r\nk0000\r\nk0001\r\nk0002\r\n');
    assert.equal(await table('price'), 'id,price\r\nk0000,0\r\nk0001,0.25\r\nk0002,0.5\r\n');
  });

  test('an import of a stream restores the documents in every format', async (server, t) => {
    await server.insert(rows);
    for (const format of ['ndjson', 'json'] as const) {
      const other = await serverOn(t, {});
      await imported(other, await textOf(server.get(`/items/stream?format=${format}`)), format);
      assert.equal(await textOf(other.get('/items/stream')), expected.map((row) => `${row}\n`).join(''));
    }
    const other = await serverOn(t, {});
    const table = await textOf(server.get('/items/stream?format=csv'));
    await imported(other, table, 'csv');
    assert.equal(await textOf(other.get('/items/stream?format=csv')), table);
  });

  test('an import of CSV restores the types that --type names', async (server, t) => {
    const price = (digits: string) => Decimal128.fromString(digits);
    const own = { list: [1, { x: 'y' }] };
    await server.insert([
      { _id: 'a', category: 'c', price: price('1.50'), at: new Date(5), own },
      { _id: 'b', category: 'c', price: price('2'), at: new Date(1.7e12), zip: '01234' },
    ]);
    const other = await serverOn(t, {});
    const table = await textOf(server.get('/items/stream?format=csv'));
    await imported(other, table, 'csv', '--type', 'price=decimal,at=date,own=json');
    assert.equal(await textOf(other.get('/items/stream')), await textOf(server.get('/items/stream')));
  });
});

test('the explorer page shows keys and own ids in separate columns, and counts every row of a stream', async (t) => {
  const browser = await openChromium(t);
  if (!browser) return;
  const server = await serverOn(t, {});
  await server.insert(documents(8));
  const { page } = await openTab(browser);
  await page.goto(`${server.url}/#/items`);
  await page.waitForSelector('#row-7:not(.coming)');
  const head = await page.locator('.grid-head button').allTextContents();
  assert.deepEqual(head, ['_id', 'id', 'category', 'price', 'nested']);
  const rows = await page.locator('.grid-body .grid-row').all();
  const cells = await Promise.all(rows.map((row) => row.getByRole('gridcell').allTextContents()));
  assert.deepEqual(
    cells.slice(0, 4).map(([_id, id]) => [_id, id]),
    [
      ['k0000', 'own 0'],
      ['k0001', '1'],
      ['k0002', ''],
      ['k0003', '{deep: [3]}'],
    ],
  );
  await page.goto(`${server.url}/#proof/items`);
  await page.getByRole('button', { name: 'Start' }).click();
  await page
    .locator('#stream-state')
    .filter({ hasText: /^complete and verified$/ })
    .waitFor();
  assert.equal(await page.textContent('#stream-rows'), '8');
});
