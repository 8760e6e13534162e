import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ArrowRows } from '../../src/load/forms/arrow.ts';
import { CsvRows } from '../../src/load/forms/csv.ts';
import { rowReading } from '../../src/load/forms/form.ts';
import { JsonRows } from '../../src/load/forms/json.ts';
import { Mismatch } from '../../src/pull/retry.ts';
import { loading } from '../support/load/loading.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';
import { shared } from '../support/tests-with.ts';

const ROWS = 100;
const ODD = ['plain', 'a,"b"\n{[\\"', '\\', '}]', 'ü€'];

const oddServerOfFile = shared(startOdd);
const oddServer = async (t: TestContext) => (await oddServerOfFile(t)) ?? assert.fail();

/** A server whose rows have texts that look like the signs of each form. */
async function startOdd(t: TestContext): Promise<TestServer> {
  const server = await serverOn(t, { MONGODB_URI: '' });
  await server.insert(
    Array.from({ length: ROWS }, (_, i) => ({
      _id: `i${i}`,
      category: 'a',
      price: i,
      text: ODD[i % ODD.length],
      nested: [{ a: { b: ODD[i % ODD.length] } }, {}],
    })),
  );
  return server;
}

async function bodyOf(server: TestServer, format: string): Promise<Buffer> {
  return Buffer.from(await (await server.get(`/items/stream?format=${format}`)).arrayBuffer());
}

/** The rows of a body that comes in pieces of `size` bytes. */
function rowsOf(format: string, body: Buffer, size: number): number {
  const { reading } = rowReading(format);
  let rows = 0;
  for (let at = 0; at < body.length; at += size) rows += reading.add(body.subarray(at, at + size));
  reading.end();
  return rows;
}

test('the rows of JSON, CSV and Arrow are counted however the body is split', async (t) => {
  const server = await oddServer(t);
  for (const format of ['json', 'csv', 'arrow']) {
    const body = await bodyOf(server, format);
    for (const size of [1, 2, 3, 7, 64, body.length])
      assert.equal(rowsOf(format, body, size), ROWS, `${format} in pieces of ${size} bytes`);
  }
});

test('a body that ends early, or goes on, is not whole in any form', async (t) => {
  const server = await oddServer(t);
  for (const format of ['json', 'csv', 'arrow']) {
    const body = await bodyOf(server, format);
    const last = format === 'json' ? body.lastIndexOf(']') : body.length - 1;
    for (const end of [0, 1, body.length >> 1, last])
      assert.throws(() => rowsOf(format, body.subarray(0, end), 64), Mismatch, `${format} up to ${end}`);
  }
  const arrow = await bodyOf(server, 'arrow');
  assert.throws(() => rowsOf('arrow', Buffer.concat([arrow, arrow]), 64), /something follows the end/);
});

test('a table is wrong when one byte of its rows is, and when it lost its last record batch', async (t) => {
  const arrow = await bodyOf(await oddServer(t), 'arrow');
  const changed = Buffer.from(arrow);
  const at = arrow.indexOf('plain');
  changed[at] = (changed[at] ?? 0) ^ 1;
  assert.throws(() => rowsOf('arrow', changed, 1000), /crc32 is [0-9a-f]{8}, not/);
  const marker = arrow.subarray(-8);
  const lastBatch = arrow.lastIndexOf(marker.subarray(0, 4), arrow.length - 9);
  const lost = Buffer.concat([arrow.subarray(0, lastBatch), marker]);
  assert.throws(() => rowsOf('arrow', lost, 1000), /does not say that it is whole/);
  assert.throws(() => new ArrowRows().add(Buffer.from('[{"id":1}]')), /no table of Arrow/);
});

test('a record of CSV that lost a cell is wrong', () => {
  assert.throws(() => new CsvRows().add(Buffer.from('id,a\n1,2\n3\n')), /has 1 cells, and its header 2/);
});

test('objects one below the other count as those of an array do', () => {
  assert.equal(new JsonRows().add(Buffer.from('{"id":"}"}\n{"of":{"x":{}},"all":[{},{"y":1}]}\n')), 2);
});

for (const [format, proof] of Object.entries({ json: 'framing', csv: 'framing', arrow: 'proved' }))
  test(`pullers of ${format} report their rows`, async (t) => {
    const server = await oddServer(t);
    const words = `--pullers 1 --format ${format} --compression gzip --for 1s --ramp 0s`.split(' ');
    const { code, result, said } = await loading([server.url, ...words]);
    assert.equal(code, 0, said);
    const [puller] = result?.pullers ?? [];
    assert.ok(puller && puller.whole > 0);
    assert.equal(puller.proof, proof);
    assert.ok(puller.rows >= puller.whole * ROWS && puller.rows <= (puller.whole + 1) * ROWS);
    assert.equal(puller.provedRows, proof === 'proved' ? puller.rows : 0);
    const { unproved = 0, ok = 0 } = result?.phases[0]?.counts ?? {};
    assert.deepEqual([unproved > 0, ok > 0], [proof !== 'proved', proof === 'proved']);
  });
