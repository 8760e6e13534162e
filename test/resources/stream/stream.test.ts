import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { idsIn, jsonOf, linesOf, textOf, type Page } from '../../support/answers.ts';
import { catalogue, expectedIds } from '../../support/resources/catalogue.ts';
import { onServers } from '../../support/process/each-server.ts';

interface Item {
  id: string | number;
}

onServers('stores', (test) => {
  test('the whole set is streamed in every order and filter, as lines and as one array', async (server) => {
    const rows = catalogue(3000);
    await server.insert(rows.map((row) => row.document));
    for (const sort of ['id_asc', 'id_desc', 'price_asc', 'price_desc']) {
      for (const category of [undefined, 'ü & ö']) {
        const filter = new URLSearchParams({
          sort,
          ...(category !== undefined && { category }),
        }).toString();
        const expected = expectedIds(rows, sort, category);
        assert.deepEqual(idsIn(await linesOf(server.get(`/items/stream?${filter}`))), expected, filter);
        const array = await server.get(`/items/stream?format=json&${filter}`);
        assert.equal(array.headers.get('content-type'), 'application/json');
        assert.deepEqual(
          ((await array.json()) as Item[]).map((item) => item.id),
          expected,
          filter,
        );
      }
    }
    await server.released();
  });

  test('an empty set is an empty stream, or an empty array', async (server) => {
    assert.equal(await textOf(server.get('/items/stream')), '');
    assert.equal(await textOf(server.get('/items/stream?format=json')), '[]\n');
  });

  test('limit ends a stream early, and a cursor continues where a page ended', async (server) => {
    const rows = catalogue(1000);
    await server.insert(rows.map((row) => row.document));
    const expected = expectedIds(rows, 'price_desc');
    for (const limit of [1, 250, 251, 999, 1000, 5000]) {
      assert.deepEqual(
        idsIn(await linesOf(server.get(`/items/stream?sort=price_desc&limit=${limit}`))),
        expected.slice(0, limit),
      );
    }
    const { page } = (await jsonOf(server.get('/items?sort=price_desc&limit=123'))) as Page;
    const rest = await linesOf(server.get(`/items/stream?sort=price_desc&cursor=${page.nextCursor}`));
    assert.deepEqual(idsIn(rest), expected.slice(123));
  });
});

onServers('combinations', (test) => {
  test('every content coding decodes to the same bytes', async (server) => {
    await server.insert(catalogue(3000).map((row) => row.document));
    const plain = await textOf(server.get('/items/stream', { 'accept-encoding': 'identity' }));
    for (const [accept, coding] of [
      ['gzip', 'gzip'],
      ['br', 'br'],
      ['gzip, br', 'br'],
      ['gzip;q=1, br;q=0.5', 'gzip'],
      ['*', 'br'],
    ] as const) {
      const coded = await server.get('/items/stream', { 'accept-encoding': accept });
      assert.equal(coded.headers.get('content-encoding'), coding, accept);
      assert.equal(coded.headers.get('vary'), 'Accept, Accept-Encoding');
      assert.equal(await coded.text(), plain, accept);
    }
  });

  test('Accept chooses the form, and format overrides it', async (server) => {
    await server.insert(catalogue(3).map((row) => row.document));
    const cases: [accept: string, query: string, type: string][] = [
      ['text/csv; charset=utf-8', '', 'text/csv; charset=utf-8; header=present'],
      ['application/json;q=0.5;charset="UTF-8", text/csv ; Charset=utf-8;q=0.1', '', 'application/json'],
      ['*/*', '', 'application/x-ndjson'],
      ['application/x-ndjson', '', 'application/x-ndjson'],
      ['application/jsonl', '', 'application/jsonl'],
      ['application/json', '', 'application/json'],
      ['application/json', '?format=ndjson', 'application/x-ndjson'],
      ['image/png', '?format=json', 'application/json'],
    ];
    for (const [accept, query, type] of cases) {
      const response = await server.get(`/items/stream${query}`, { accept });
      assert.equal(response.headers.get('content-type'), type, `${accept} ${query}`);
      await response.arrayBuffer();
    }
  });

  test('rows of more than 16 MB, the most in a reply of MongoDB, arrive whole, as a stream and as a page', async (server) => {
    const fill = 'x'.repeat(2_000_000);
    const ids = Array.from({ length: 9 }, (_, i) => i);
    for (const _id of ids) await server.insert([{ _id, category: 'large', price: _id, fill }]);
    assert.deepEqual(idsIn(await linesOf(server.get('/items/stream'))), ids);
    const { data, page } = (await jsonOf(server.get('/items?sort=price_desc'))) as Page<Item>;
    assert.deepEqual([data.map((item) => item.id), page.hasMore], [ids.toReversed(), false]);
  });

  test('a client that leaves stops the reading and frees everything', async (server) => {
    const fill = 'x'.repeat(100_000);
    for (let i = 0; i < 10; i++) {
      await server.insert(
        Array.from({ length: 20 }, (_, j) => ({ _id: i * 20 + j, category: 'c', price: i, fill })),
      );
    }
    const { hostname, port } = new URL(server.url);
    for (let round = 0; round < 20; round++) {
      const socket = connect(Number(port), hostname);
      socket.write('GET /items/stream HTTP/1.1\r\nHost: localhost\r\n\r\n');
      await once(socket, 'data');
      socket.pause();
      if (round % 2 === 0) socket.destroy();
      else socket.resetAndDestroy();
    }
    await server.released();
  });
});
