import assert from 'node:assert/strict';
import { textOf } from '../support/answers.ts';
import { onServers } from '../support/process/each-server.ts';

const ROWS = [
  {
    _id: 'a',
    category: 'c',
    price: 1,
    customer: { name: 'Ada', country: 'NL', address: { city: 'Delft', zip: '2611' } },
    lines: [{ sku: 'x', count: 1 }, 'loose', { count: 2 }, [{ sku: 'deep', count: 3 }]],
  },
  { _id: 'b', category: 'c', price: 2, customer: 'unknown', lines: [] },
  { _id: 'c', category: 'c', price: 3, 'customer.country': 'DE', customer: { country: null } },
  { _id: 'd', category: 'c', price: 4, customer: { name: 'Bo' }, lines: { sku: 'y, z', count: 4 } },
];

/** What `fields` selects of ROWS, in NDJSON and in CSV. */
const CASES: [fields: string, lines: string, table: string][] = [
  [
    'customer.country',
    '{"id":"a","customer":{"country":"NL"}}\n{"id":"b"}\n{"id":"c","customer.country":"DE","customer":{"country":null}}\n{"id":"d","customer":{}}\n',
    'id,customer.country\r\na,NL\r\nb,\r\nc,DE\r\nd,\r\n',
  ],
  [
    'customer.address.city,price',
    '{"id":"a","price":1,"customer":{"address":{"city":"Delft"}}}\n{"id":"b","price":2}\n{"id":"c","price":3,"customer":{}}\n{"id":"d","price":4,"customer":{}}\n',
    'id,customer.address.city,price\r\na,Delft,1\r\nb,,2\r\nc,,3\r\nd,,4\r\n',
  ],
  [
    'lines.sku',
    '{"id":"a","lines":[{"sku":"x"},{},[{"sku":"deep"}]]}\n{"id":"b","lines":[]}\n{"id":"c"}\n{"id":"d","lines":{"sku":"y, z"}}\n',
    'id,lines.sku\r\na,"[{""sku"":""x""},{},[{""sku"":""deep""}]]"\r\nb,"[]"\r\nc,\r\nd,"y, z"\r\n',
  ],
  [
    'customer.address.city,customer.address,customer.name',
    '{"id":"a","customer":{"name":"Ada","address":{"city":"Delft","zip":"2611"}}}\n{"id":"b"}\n{"id":"c","customer":{}}\n{"id":"d","customer":{"name":"Bo"}}\n',
    'id,customer.address,customer.name\r\na,"{""city"":""Delft"",""zip"":""2611""}",Ada\r\nb,,\r\nc,,\r\nd,,Bo\r\n',
  ],
];

onServers('stores', (test) => {
  test('fields selects the same nested members in a page and every stream', async (server) => {
    await server.insert(ROWS);
    for (const [fields, lines, table] of CASES) {
      const path = `/items/stream?fields=${fields}`;
      assert.equal(await textOf(server.get(path)), lines, fields);
      const array = `[${lines.trimEnd().replaceAll('\n', ',')}]`;
      assert.equal(await textOf(server.get(`${path}&format=json`)), `${array}\n`, fields);
      assert.equal(await textOf(server.get(`${path}&format=csv`)), table, fields);
      const page = await textOf(server.get(`/items?fields=${fields}`));
      assert.ok(page.startsWith(`{"data":${array},"page":`), page);
    }
  });

  test('the ETag of a page changes only with what fields selects', async (server) => {
    await server.insert(ROWS);
    const etag = async (fields: string) => (await server.get(`/items?fields=${fields}`)).headers.get('etag');
    assert.equal(await etag('customer.address,customer.address.zip'), await etag('customer.address'));
    assert.notEqual(await etag('customer.address.city'), await etag('customer.address.zip'));
  });

  test('a path with an empty segment is refused wherever fields is given', async (server) => {
    for (const fields of ['customer.', '.customer', 'a..b', '.', 'price,a.', 'a%00b']) {
      for (const path of ['/items', '/items/stream', '/items/partitions']) {
        const response = await server.get(`${path}?fields=${fields}`);
        const { code, parameter } = (await response.json()) as Record<string, unknown>;
        assert.deepEqual([response.status, code, parameter], [400, 'invalid-parameter', 'fields'], fields);
      }
    }
    const response = await fetch(`${server.url}/exports`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ fields: ['price', 'a..b'] }),
    });
    const problem = (await response.json()) as { code: string; errors: { pointer: string }[] };
    assert.deepEqual([problem.code, problem.errors[0]?.pointer], ['invalid-body', '/fields/1']);
  });
});
