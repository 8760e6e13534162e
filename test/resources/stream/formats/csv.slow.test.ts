import assert from 'node:assert/strict';
import { parse } from 'csv-parse/sync';
import { linesOf, problemOf, textOf } from '../../../support/answers.ts';
import { catalogue } from '../../../support/resources/catalogue.ts';
import { onServers } from '../../../support/process/each-server.ts';

type Cells = Record<string, string>;

/** The text of a JSON value's cell. */
function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

onServers('stores', (test) => {
  test('a stream that is read back by a CSV reader has the rows of the NDJSON stream, nested values as JSON', async (server) => {
    const rows = catalogue(3000).map(({ document }, n) => ({
      ...document,
      text: ['plain', 'a,b', 'say "x"', 'two\r\nlines', '', '=1+1', 'ünï\u{1f600}'][n % 7],
      nested: n % 3 === 0 ? { list: [n, 'a"b', null], empty: {} } : null,
      ...(n % 2 === 0 && { even: true }),
    }));
    await server.insert(rows);
    const lines = await linesOf(server.get('/items/stream?sort=price_desc'));
    const response = await server.get('/items/stream?format=csv&sort=price_desc');
    assert.equal(response.headers.get('content-type'), 'text/csv; charset=utf-8; header=present');
    const text = await response.text();
    const columns = (text.split('\r\n', 1)[0] ?? '').split(',');
    assert.deepEqual(columns.slice(0, 3), ['id', 'category', 'price']);
    assert.deepEqual(columns.toSorted(), ['category', 'even', 'id', 'n', 'nested', 'price', 'text']);
    const read: Cells[] = parse(text, { columns: true, record_delimiter: '\r\n' });
    const expected = lines.map((line) => {
      const item = JSON.parse(line) as Record<string, unknown>;
      return Object.fromEntries(columns.map((name) => [name, cellOf(item[name])]));
    });
    assert.deepEqual(read, expected);
  });

  test('columns are the requested fields in order, and by default those of the first 1,000 rows, without later ones', async (server) => {
    const filler = 'x'.repeat(4000); // 1,000 rows are more than one batch
    await server.insert(
      Array.from({ length: 1100 }, (_, n) => ({
        _id: n,
        category: 'c',
        price: n,
        ...(n === 0 && { zero: 0 }),
        ...(n === 999 && { last: 1 }),
        ...(n === 1000 && { late: 1 }),
        filler,
      })),
    );
    const headerOf = async (query: string) =>
      (await textOf(server.get(`/items/stream?format=csv&${query}`))).split('\r\n', 1)[0];
    assert.equal(await headerOf(''), 'id,category,price,zero,filler,last');
    assert.equal(await headerOf('limit=999'), 'id,category,price,zero,filler');
    assert.equal(await headerOf('fields=late,price&limit=1'), 'id,late,price');
    assert.equal(await headerOf('fields=price,id&limit=1'), 'price,id');
    assert.equal(await headerOf('category=none'), 'id,category,price');
  });

  test('pieces without a header join to the whole, and require fields', async (server) => {
    await server.insert(catalogue(2000, 'string').map(({ document }) => document));
    const path = '/items/stream?format=csv&sort=price_asc&fields=price,id,n';
    const whole = await textOf(server.get(path));
    const first = await textOf(server.get(`${path}&limit=777`));
    const [price, id] = (first.split('\r\n').at(-2) ?? '').split(',');
    const rest = await server.get(`${path}&header=absent&after=${price},${id}`);
    assert.equal(rest.headers.get('content-type'), 'text/csv; charset=utf-8; header=absent');
    assert.equal(first + (await rest.text()), whole);
    const cases = [
      'format=csv&header=absent&after=x',
      'safe=true',
      'format=json&header=absent',
      'format=csv&checkpoints=true',
    ];
    for (const query of cases) {
      const { status, code } = await problemOf(server.get(`/items/stream?${query}`));
      assert.deepEqual([status, code], [400, 'conflicting-parameters'], query);
    }
  });

  test('excel=true writes what Excel opens by a double click, in the language of locale, and runs no formula', async (server) => {
    await server.insert([{ _id: 'a', category: '=1+1', price: 1234.5, note: 'x;y' }]);
    const get = (query: string) => server.get(`/items/stream?format=csv&${query}`);
    const bytes = async (query: string) => Buffer.from(await (await get(query)).arrayBuffer()).toString();
    assert.equal(
      await bytes('excel=true&locale=de'),
      `\ufeffid;category;price;note\r\na;'=1+1;1234,5;"x;y"\r\n`,
    );
    const english = `\ufeffid,category,price,note\r\na,'=1+1,1234.5,x;y\r\n`;
    assert.equal(await bytes('excel=true'), english);
    assert.equal(await bytes('excel=true&locale=en&safe=true'), english);
    assert.equal(await bytes('excel=true&safe=false'), english.replace("'", ''));
    assert.equal(await bytes('excel=true&locale=fr&header=absent&fields=price'), 'a;1234,5\r\n');
    assert.equal(await bytes('excel=false'), 'id,category,price,note\r\na,=1+1,1234.5,x;y\r\n');
    for (const query of ['locale=de', 'locale=de&excel=false'])
      assert.equal((await problemOf(get(query))).code, 'conflicting-parameters');
    assert.equal((await problemOf(get('excel=true&locale=xx'))).status, 400);
    assert.equal((await problemOf(server.get('/items/stream?excel=true'))).code, 'conflicting-parameters');
  });

  test('Accept: text/csv selects CSV, every coding decodes to the same bytes, and safe=true disarms formulas', async (server) => {
    await server.insert([{ _id: '-1', category: '=c', price: -1, note: '@x' }]);
    for (const coding of ['identity', 'gzip', 'br']) {
      const headers = { accept: 'text/csv', 'accept-encoding': coding };
      const exact = await textOf(server.get('/items/stream', headers));
      assert.equal(exact, 'id,category,price,note\r\n-1,=c,-1,@x\r\n');
      const safe = await textOf(server.get('/items/stream?safe=true', headers));
      assert.equal(safe, "id,category,price,note\r\n'-1,'=c,-1,'@x\r\n");
    }
  });
});
