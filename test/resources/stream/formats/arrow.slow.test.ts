import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { crc32 } from 'node:zlib';
import { pino } from 'pino';
import { Decimal128, Double, Long } from '../../../../src/store/values/bson.ts';
import { arrowMessages, arrowRows } from '../../../support/resources/arrow.ts';
import { below, randomFrom } from '../../../support/store/random-collection.ts';
import { resourcesFile, resourceServer } from '../../../support/resources/resources.ts';
import { onServers, onStores, sharedByStore } from '../../../support/process/each-server.ts';
import { serverOn, testServer, type StoreName } from '../../../support/process/server.ts';

const ROWS = 5_000;
const END_MARKER = Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

interface Proof {
  readonly cursor: string;
  readonly rows: number;
  readonly bytes: number;
  readonly crc32: string;
  readonly changes?: string;
}

const withItems = sharedByStore(async (t, store) => {
  const server = await testServer(t, store, 'uws');
  await server?.insert(
    Array.from({ length: ROWS }, (_, n) => ({
      _id: `i${String(n).padStart(5, '0')}`,
      category: n % 2 === 0 ? 'even' : 'odd',
      price: n,
      note: 'x'.repeat(n % 300),
    })),
  );
  return server;
});

/** The columns of a stream, and the proofs of its record batches, the last of which is its end. */
async function read(url: string) {
  const response = await fetch(url);
  assert.equal(response.status, 200, await response.clone().text());
  assert.equal(response.headers.get('content-type'), 'application/vnd.apache.arrow.stream');
  const [schema, ...batches] = arrowMessages(Buffer.from(await response.arrayBuffer()));
  const columns = schema?.metadata.get('sluice.columns') ?? '';
  const proofs = batches.map(({ metadata, body }, n) => {
    const name = n === batches.length - 1 ? 'sluice.end' : 'sluice.checkpoint';
    return { body, proof: JSON.parse(metadata.get(name) ?? '') as Proof };
  });
  return { columns, proofs, changesFrom: response.headers.get('changes-from') };
}

async function bytesOf(url: string): Promise<Buffer> {
  const response = await fetch(url);
  assert.equal(response.status, 200);
  return Buffer.from(await response.arrayBuffer());
}

function withColumns(url: string, columns: string, cursor: string): string {
  return `${url}&${new URLSearchParams({ columns, cursor }).toString()}`;
}

onStores(withItems, (test) => {
  test('each record batch proves all rows up to its end', async (server) => {
    const { columns, proofs, changesFrom } = await read(`${server.url}/items/stream?format=arrow`);
    assert.equal(columns, 'id:text,category:text,price:integer,note:text');
    assert.ok(proofs.length > 3);
    let bytes = 0;
    let crc = 0;
    for (const { body, proof } of proofs) {
      bytes += body.length;
      crc = crc32(body, crc);
      assert.deepEqual([proof.bytes, proof.crc32], [bytes, crc.toString(16).padStart(8, '0')]);
    }
    const end = proofs.at(-1)?.proof;
    assert.equal(end?.rows, ROWS);
    assert.equal(end.changes ?? null, changesFrom);
  });

  test('a table that is cut after any record batch has no end, and goes on to the same table', async (server) => {
    const url = `${server.url}/items/stream?format=arrow&category=odd&sort=price_desc`;
    const stream = await bytesOf(url);
    const [schema, ...whole] = arrowMessages(stream);
    const columns = schema?.metadata.get('sluice.columns') ?? '';
    const kinds = [...columns.split(',').map((column) => column.split(':')[1] ?? ''), 'json'];
    const wanted = arrowRows(whole, kinds);
    assert.equal(wanted.length, ROWS / 2);
    assert.deepEqual(wanted[0], ['i04999', 'odd', 4999n, 'x'.repeat(4999 % 300), null]);
    const batches = whole.filter(({ metadata }) => metadata.has('sluice.checkpoint'));
    assert.equal(batches.length, whole.length - 1);
    for (const [n, { end, metadata }] of batches.entries()) {
      assert.throws(() => arrowMessages(stream.subarray(0, end)), /no end marker/);
      const cut = arrowMessages(Buffer.concat([stream.subarray(0, end), END_MARKER]));
      assert.ok(cut.every((message) => !message.metadata.has('sluice.end')));
      const { cursor, rows } = JSON.parse(metadata.get('sluice.checkpoint') ?? '') as Proof;
      const rest = arrowMessages(await bytesOf(withColumns(url, columns, cursor)));
      assert.equal(rest[0]?.metadata.get('sluice.columns'), columns);
      const found = [...arrowRows(cut.slice(1), kinds), ...arrowRows(rest.slice(1), kinds)];
      assert.deepEqual(found, wanted, `cut after record batch ${n}, which ends with row ${rows}`);
      const proof = JSON.parse(rest.at(-1)?.metadata.get('sluice.end') ?? '') as Proof;
      assert.equal(rows + proof.rows, wanted.length);
    }
    const refused = await fetch(`${url}&cursor=${(await read(url)).proofs[0]?.proof.cursor ?? ''}`);
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /columns is required with cursor/);
  });

  test('parts have the same columns, and are together the table', async (server) => {
    const answer = await fetch(`${server.url}/items/partitions?format=arrow&n=3&fields=price`);
    const { partitions } = (await answer.json()) as { partitions: readonly { readonly url: string }[] };
    const parts = await Promise.all(partitions.map(({ url }) => read(server.url + url)));
    assert.deepEqual(new Set(parts.map(({ columns }) => columns)), new Set(['id:text,price:integer']));
    const rows = parts.map(({ proofs }) => proofs.at(-1)?.proof.rows ?? 0);
    assert.equal(rows.length, 3);
    assert.equal(
      rows.reduce((a, b) => a + b),
      ROWS,
    );
  });
});

onServers('stores', (test) => {
  test('the kinds of columns are those of rows from all over the set, in any order', async (server) => {
    const price = (n: number) => (n % 1_000 >= 400 && n % 1_000 < 700 ? n + 0.5 : n);
    const rows = Array.from({ length: 2_000 }, (_, n) => ({ _id: n, category: 'x', price: price(n) - 500 }));
    await server.insert(rows);
    for (const query of ['sort=price_asc', 'sort=price_desc', 'category=x&sort=price_asc&max_price=600']) {
      const { columns } = await read(`${server.url}/items/stream?format=arrow&${query}`);
      assert.equal(columns, 'id:integer,category:text,price:double', query);
    }
  });
});

test('a strict table is cut at a value that fits no column, and the log names its row', async (t) => {
  const log: string[] = [];
  const server = await serverOn(
    t,
    { HTTP_ENGINE: 'uws', LOG_LEVEL: 'warn' },
    { log: pino({ level: 'warn' }, { write: (line) => void log.push(line) }) },
  );
  await server.insert([
    { _id: 'a', category: 'x', price: 1 },
    { _id: 'odd', category: 'x', price: 1.5 },
  ]);
  const query = 'format=arrow&schema=strict&columns=id:text,category:text,price:integer';
  await assert.rejects(fetch(`${server.url}/items/stream?${query}`).then((answer) => answer.arrayBuffer()));
  assert.match(log.join(''), /odd.*fits no column/);
  const open = await read(`${server.url}/items/stream?${query.replace('strict', 'open')}`);
  assert.equal(open.proofs.at(-1)?.proof.rows, 2);
});

for (const store of ['sqlite', 'mongodb'] satisfies StoreName[])
  test(`declared kinds are those of columns, and make \`columns\` dispensable in pieces (${store})`, async (t) => {
    const fields = { id: 'string', total: 'number', at: 'date', note: 'string' };
    const RESOURCES_FILE = await resourcesFile(t, { resources: { sales: { fields, collection: 'sales' } } });
    const rows = Array.from({ length: 40 }, (_, n) => ({
      _id: `s${String(n).padStart(2, '0')}`,
      total: n,
      at: new Date(n),
      other: n,
      note: n === 7 ? 7 : `note ${n}`,
    }));
    // Without EXPOSE: the file names the collection.
    const server = await resourceServer(
      t,
      store,
      { name: 'sales', rows, indexes: [] },
      { RESOURCES_FILE, EXPOSE: '' },
    );
    if (!server) return;
    const url = `${server.url}/sales/stream?format=arrow`;
    const sampled = await read(url);
    assert.equal(sampled.columns, 'id:text,total:double,at:date,other:integer,note:text');
    const whole = await read(`${url}&fields=total,note`);
    assert.equal(whole.columns, 'id:text,total:double,note:text');
    const piece = arrowMessages(await bytesOf(`${url}&fields=total,note&after=s36`));
    assert.equal(piece[0]?.metadata.get('sluice.columns'), whole.columns);
    assert.deepEqual(arrowRows(piece.slice(1), ['text', 'double', 'text', 'json']), [
      ['s37', 37, 'note 37', null],
      ['s38', 38, 'note 38', null],
      ['s39', 39, 'note 39', null],
    ]);
    const misfit = arrowMessages(await bytesOf(`${url}&fields=note&after=s06&limit=1`));
    assert.deepEqual(arrowRows(misfit.slice(1), ['text', 'text', 'json']), [['s07', null, '{"note":7}']]);
    const refused = await fetch(`${url}&fields=total,other&after=s36`);
    assert.equal(refused.status, 400, 'the kind of other is not declared');
    assert.match(await refused.text(), /columns is required/);
  });

/** What rows of these values of `n` become: the columns of their table, and its values of `n`, with `_rest`. */
async function tableOf(
  t: TestContext,
  values: readonly unknown[],
  { query = '', declared }: { readonly query?: string; readonly declared?: string } = {},
) {
  const fields = { n: declared };
  const RESOURCES_FILE = await resourcesFile(t, { resources: { sums: { collection: 'sums', fields } } });
  const settings = declared === undefined ? {} : { RESOURCES_FILE, EXPOSE: '' };
  const rows = values.map((n, at) => ({ _id: at, n }));
  const server = await resourceServer(t, 'sqlite', { name: 'sums', rows, indexes: [] }, settings);
  const [schema, ...batches] = arrowMessages(await bytesOf(`${server.url}/sums/stream?format=arrow${query}`));
  const columns = schema?.metadata.get('sluice.columns') ?? '';
  const kind = columns.replace('id:integer,n:', '');
  return { kind, rows: arrowRows(batches, ['integer', kind, 'json']).map(([, n, rest]) => [n, rest]) };
}

const decimals = (...texts: readonly string[]) => texts.map((text) => Decimal128.fromString(text));

test('integers, doubles and decimals are doubles, the nearest ones', async (t) => {
  const texts = decimalTexts(50_000);
  const others = [new Double(0.5), 7, Long.fromString('9007199254740993'), Long.MIN_VALUE];
  const table = await tableOf(t, [...others, ...decimals(...texts, '1E+400', 'NaN', '-Infinity')]);
  assert.equal(table.kind, 'double');
  const numbers = [0.5, 7, 9007199254740992, -(2 ** 63), ...texts.map(Number)];
  for (const [n, [found, rest]] of table.rows.slice(0, numbers.length).entries()) {
    assert.ok(Object.is(found, numbers[n]), `${texts[n - others.length]} becomes ${String(found)}`);
    assert.equal(rest, null);
  }
  assert.deepEqual(table.rows.slice(numbers.length), [
    [null, '{"n":1E+400}'],
    [NaN, null],
    [-Infinity, null],
  ]);
});

test('decimals and integers are decimals with the most places that were seen', async (t) => {
  const fitting = ['1.50', '-0.001', '7E+2', '12345678901234567890123456789012.34', '-1.5000000', '0E-6176'];
  const unfit = ['NaN', '1E+36'];
  const values = [...decimals(...fitting), Long.MIN_VALUE, -7, null, ...decimals(...unfit)];
  const table = await tableOf(t, values, { query: '&columns=id:integer,n:decimal(38,3)' });
  assert.deepEqual(table.rows, [
    ...[1500n, -1n, 700000n, 12345678901234567890123456789012340n, -1500n, 0n].map((n) => [n, null]),
    ...[-9223372036854775808000n, -7000n, null].map((n) => [n, null]),
    ...['null', '1E+36'].map((text) => [null, `{"n":${text}}`]),
  ]);
  const found = await tableOf(t, [5, null, ...decimals('1.5', '0.125', '1E-40', 'Infinity')]);
  assert.equal(found.kind, 'decimal(38,3)');
  assert.deepEqual(found.rows.slice(0, 5), [
    [5000n, null],
    [null, null],
    [1500n, null],
    [125n, null],
    [null, '{"n":1E-40}'],
  ]);
  const most = await tableOf(t, decimals('9.999999999999999999999999999999999E+33', '1E-4'));
  assert.deepEqual(most, {
    kind: 'decimal(38,4)',
    rows: [
      [99999999999999999999999999999999990000n, null],
      [1n, null],
    ],
  });
});

test('columns whose kind is declared have decimals, too', async (t) => {
  const values = [...decimals('1.25', '3'), 2];
  const doubles = await tableOf(t, values, { declared: 'number' });
  assert.deepEqual([doubles.kind, doubles.rows.map(([n]) => n)], ['double', [1.25, 3, 2]]);
  const scaled = await tableOf(t, values, { declared: 'decimal', query: '&fields=n' });
  assert.deepEqual([scaled.kind, scaled.rows.map(([n]) => n)], ['decimal(38,2)', [125n, 300n, 200n]]);
  const digits = await tableOf(t, values, { query: '&columns=id:integer,n:decimal' });
  assert.deepEqual([digits.kind, digits.rows.at(0)], ['decimal', ['1.25', null]]);
});

/** Decimals of all lengths and exponents, and such as lie between two doubles or next to there. */
function decimalTexts(count: number): readonly string[] {
  const random = randomFrom(9);
  const most = (limit: number) => below(random, limit);
  const digits = (length: number) => Array.from({ length }, () => most(10)).join('');
  return Array.from({ length: count }, (_, n) => {
    const sign = n % 2 === 0 ? '' : '-';
    if (n % 4 === 0) return `${sign}${digits(1 + most(7))}.${digits(1 + most(4))}`;
    if (n % 4 === 1) return `${sign}${2n ** 53n + BigInt(most(2 ** 40)) * 2n + 1n}${digits(most(3))}`;
    if (n % 4 === 2) return `${sign}${digits(1 + most(17))}E${most(60) - 30}`;
    return `${sign}${digits(1 + most(34))}E${most(660) - 400}`;
  });
}
