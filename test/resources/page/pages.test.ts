import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonOf, type Page as PageOf } from '../../support/answers.ts';
import { catalogue, expectedIds } from '../../support/resources/catalogue.ts';
import { testServer, type TestServer } from '../../support/process/server.ts';
import { onServers } from '../../support/process/each-server.ts';

const SORTS = ['id_asc', 'id_desc', 'price_asc', 'price_desc'];
type Style = 'cursor' | 'offset' | 'page';
/** Pages of one row end between rows of equal price. */
const WALKS: readonly (readonly [Style, limit: number])[] = [
  ['cursor', 1],
  ['cursor', 7],
  ['cursor', 1000],
  ['offset', 7],
  ['page', 7],
];

type Page = PageOf<{ readonly id: string | number }>;

async function getPage(server: TestServer, query: Record<string, string | number>): Promise<Page> {
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  );
  return (await jsonOf(server.get(`/items?${search.toString()}`))) as Page;
}

/** Walks every page as a client would and checks its metadata. */
async function walk(
  server: TestServer,
  style: Style,
  limit: number,
  filter: Record<string, string>,
): Promise<(string | number)[]> {
  const ids: (string | number)[] = [];
  let position: Record<string, string | number> =
    style === 'offset' ? { offset: 0 } : style === 'page' ? { page: 1 } : {};
  for (let number = 1; ; number++) {
    const { data, page } = await getPage(server, { ...filter, limit, ...position });
    ids.push(...data.map((item) => item.id));
    assert.equal(page.limit, limit);
    if (!page.hasMore) return ids;
    assert.equal(data.length, limit, 'a page before the last one is full');
    assert.ok(page.nextCursor);
    position =
      style === 'offset'
        ? { offset: number * limit }
        : style === 'page'
          ? { page: number + 1 }
          : { cursor: page.nextCursor };
  }
}

onServers('stores', (test) => {
  test('walking all pages gives exactly the rows of the sorted reference, in every style, order and filter', async (server) => {
    const rows = catalogue(48);
    await server.insert(rows.map((row) => row.document));
    for (const sort of SORTS) {
      for (const category of [undefined, 'ü & ö']) {
        const filter = { sort, ...(category !== undefined && { category }) };
        const expected = expectedIds(rows, sort, category);
        for (const [style, limit] of WALKS)
          assert.deepEqual(
            await walk(server, style, limit, filter),
            expected,
            `${style} ${limit} ${JSON.stringify(filter)}`,
          );
      }
    }
  });

  test('a price range includes both bounds, and implies price_asc', async (server) => {
    const rows = catalogue(200);
    await server.insert(rows.map((row) => row.document));
    const inside = rows.filter((row) => row.price >= 2.5 && row.price <= 5);
    const range = { min_price: '2.5', max_price: '5' };
    assert.deepEqual(await walk(server, 'cursor', 7, range), expectedIds(inside, 'price_asc'));
    assert.deepEqual(
      await walk(server, 'cursor', 7, { ...range, sort: 'price_desc' }),
      expectedIds(inside, 'price_desc'),
    );
    const above = rows.filter((row) => row.price >= 9.75);
    assert.deepEqual(await walk(server, 'page', 7, { min_price: '9.75' }), expectedIds(above, 'price_asc'));
    const music = rows.filter((row) => row.price <= 0.5 && row.category === 'music');
    assert.deepEqual(
      await walk(server, 'offset', 7, { max_price: '0.5', category: 'music' }),
      expectedIds(music, 'price_asc'),
    );
    assert.deepEqual((await getPage(server, { min_price: 5, max_price: 4 })).data, []);
  });

  test('an empty page is no error, and keeps the cursor for clients that poll', async (server) => {
    assert.deepEqual(await getPage(server, {}), {
      data: [],
      page: { limit: 50, hasMore: false, nextCursor: null },
    });
    await server.insert(catalogue(3, 'string').map((row) => row.document));
    const all = await getPage(server, {});
    assert.equal(all.page.hasMore, false);
    const cursor = all.page.nextCursor ?? '';
    assert.deepEqual(await getPage(server, { cursor }), {
      data: [],
      page: { limit: 50, hasMore: false, nextCursor: cursor },
    });
    await server.insert([{ _id: 'zzz', category: 'late', price: 1 }]);
    assert.deepEqual((await getPage(server, { cursor })).data, [{ id: 'zzz', category: 'late', price: 1 }]);
    assert.deepEqual((await getPage(server, { offset: 100 })).data, []);
    assert.deepEqual((await getPage(server, { category: 'none' })).data, []);
  });

  test('Link has the first, next and previous page', async (server) => {
    await server.insert(catalogue(30).map((row) => row.document));
    const link = async (path: string) => (await server.get(path)).headers.get('link');
    assert.equal(
      await link('/items?offset=5&limit=10&sort=price_asc'),
      '</items?limit=10&sort=price_asc&offset=0>; rel="first", </items?limit=10&sort=price_asc&offset=0>; rel="prev", </items?limit=10&sort=price_asc&offset=15>; rel="next"',
    );
    assert.equal(
      await link('/items?page=3&limit=10'),
      '</items?limit=10&page=1>; rel="first", </items?limit=10&page=2>; rel="prev"',
    );
    const { page } = await getPage(server, { limit: 10 });
    assert.equal(
      await link('/items?limit=10'),
      `</items?limit=10>; rel="first", </items?limit=10&cursor=${page.nextCursor ?? ''}>; rel="next"`,
    );
  });

  test('a page whose links would be too long for a header goes on by its cursor', async (server) => {
    const rows = catalogue(9, 'string');
    await server.insert(rows.map((row) => row.document));
    for (const count of [10, 20, 50]) {
      const fields = Array.from({ length: count }, (_, n) => `${'f'.repeat(240)}${n}`).join();
      const response = await server.get(`/items?limit=4&page=2&fields=${fields}`);
      assert.equal(response.status, 200, `${count} fields`);
      const rels = [...(response.headers.get('link') ?? '').matchAll(/rel="(\w+)"/g)].map(([, rel]) => rel);
      assert.deepEqual(rels, { 10: ['prev', 'next'], 20: ['next'], 50: [] }[count], `${count} fields`);
      const { page } = (await response.json()) as Page;
      const { data } = await getPage(server, { fields, cursor: page.nextCursor ?? '' });
      assert.deepEqual(
        data.map(({ id }) => id),
        expectedIds(rows, 'id_asc').slice(8),
      );
    }
  });
});

onServers('combinations', (test) => {
  test('a page is revalidated by its ETag in any content coding', async (server) => {
    await server.insert(catalogue(30).map((row) => row.document));
    const first = await server.get('/items');
    const etag = first.headers.get('etag') ?? '';
    assert.match(etag, /^W\/"[0-9a-f]{16}"$/);
    assert.equal(first.headers.get('cache-control'), 'private, no-cache');
    for (const coding of ['identity', 'br', 'gzip']) {
      const again = await server.get('/items', {
        'if-none-match': `"x", ${etag}`,
        'accept-encoding': coding,
      });
      assert.equal(again.status, 304, coding);
      assert.equal(again.headers.get('etag'), etag);
      assert.equal(await again.text(), '');
    }
    assert.equal((await server.get('/items?limit=3', { 'if-none-match': etag })).status, 200);
    for (const malformed of [etag.slice(3, -1), `${etag} "x"`, `"x" ${etag}`, `*, ${etag}`, `x${etag}`]) {
      const refused = await server.get('/items', { 'if-none-match': malformed });
      assert.equal(refused.status, 400, malformed);
      assert.equal(((await refused.json()) as { code: string }).code, 'invalid-header');
    }
    // RFC 9110, 13.1.1: If-Match compares strongly, and a page's tag is weak.
    assert.equal((await server.get('/items', { 'if-match': etag })).status, 412);
    assert.equal((await server.get('/items', { 'if-match': '*' })).status, 200);
  });

  test('an item is found by its id, in the type that the collection uses', async (server) => {
    await server.insert([
      { _id: 'a/ä 1', category: 'c', price: 1.5, nested: { _id: 7 }, id: 'own' },
      { _id: 'stream', category: 'c', price: 2 },
    ]);
    const response = await server.get('/items/a%2F%C3%A4%201');
    assert.equal(response.status, 200);
    assert.equal(
      await response.text(),
      '{"_id":"a/ä 1","category":"c","price":1.5,"nested":{"_id":7},"id":"own"}',
    );
    const etag = response.headers.get('etag') ?? '';
    assert.match(etag, /^"[0-9a-f]{16}"$/);
    assert.equal((await server.get('/items/a%2F%C3%A4%201', { 'if-none-match': etag })).status, 304);
    for (const [tags, status] of [
      [etag, 200],
      [`"x", ${etag.slice(0, -1)}-br"`, 200],
      [`W/${etag}`, 412],
      ['"x"', 412],
      ['x', 400],
    ] as const)
      assert.equal((await server.get('/items/a%2F%C3%A4%201', { 'if-match': tags })).status, status, tags);
    assert.equal(((await (await server.get('/items/%73tream')).json()) as { id: string }).id, 'stream');
    const missing = await server.get('/items/nothing');
    assert.equal(missing.status, 404);
    assert.equal(((await missing.json()) as { code: string }).code, 'not-found');
  });

  test('pages that are read slowly, abandoned or compressed do not affect each other', async (server) => {
    const fill = 'x'.repeat(700); // a page exceeds a socket's buffer
    await server.insert(catalogue(1200).map(({ document }) => ({ ...document, fill })));
    const paths = Array.from({ length: 20 }, (_, n) => `/items?limit=${1000 - n}&offset=${n * 10}`);
    const codings = ['identity', 'br', 'identity', 'gzip'];
    const expected: string[] = [];
    for (const path of paths) expected.push(await (await server.get(path)).text());

    const leaving = new AbortController();
    const ask = (path: string, n: number) =>
      fetch(server.url + path, {
        headers: { 'accept-encoding': codings[n % codings.length] ?? '' },
        signal: n % 5 === 4 ? leaving.signal : null,
      });
    const responses = await Promise.all(paths.map(ask));
    leaving.abort();
    const etag = responses[0]?.headers.get('etag') ?? '';
    const known = await server.get(paths[0] ?? '', { 'if-none-match': etag });
    assert.equal(known.status, 304);
    const later = await Promise.all(paths.map((path) => server.get(path)));
    for (const [n, response] of [...responses.entries()].reverse()) {
      const isWhole = response.text().then((text) => text === expected[n]);
      if (n % 5 === 4) await assert.rejects(isWhole);
      else assert.equal(await isWhole, true, paths[n]);
    }
    for (const [n, response] of later.entries())
      assert.equal((await response.text()) === expected[n], true, `${paths[n]}, later`);
  });

  test('HEAD answers as GET does, without the body', async (server) => {
    await server.insert(catalogue(30).map((row) => row.document));
    const get = await server.get('/items', { 'accept-encoding': 'identity' });
    const head = await fetch(`${server.url}/items`, {
      method: 'HEAD',
      headers: { 'accept-encoding': 'identity' },
    });
    assert.equal(head.status, 200);
    assert.equal(head.headers.get('content-length'), String((await get.arrayBuffer()).byteLength));
    assert.equal(head.headers.get('etag'), get.headers.get('etag'));
    const stream = await fetch(`${server.url}/items/stream`, { method: 'HEAD' });
    assert.equal(stream.status, 200);
    await server.released();
  });
});

test('pages link to those beside them, beyond the deepest offset by cursor, and by no cursor that is too long for a head', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws', { MAX_OFFSET: '20' });
  // The ids are so long that their cursors have 2,048 characters, and some more or fewer.
  const ids = Array.from({ length: 45 }, (_, n) => `${n + 10}`.padEnd(1_473 + n, 'x'));
  await server.insert(ids.map((_id) => ({ _id, category: 'a', price: 1 })));
  const linked = async (query: string) => {
    const response = await server.get(`/items?${query}`);
    const links = (response.headers.get('link') ?? '').matchAll(/<\/items\?([^>]*)>; rel="(\w+)"/g);
    const { page } = (await response.json()) as Page;
    return { ...page, links: Object.fromEntries([...links].map(([, asked, rel = '']) => [rel, asked])) };
  };
  const linksOf = async (query: string) => (await linked(query)).links;
  const first = 'limit=10&page=1';
  assert.deepEqual(await linksOf('page=1&limit=10'), { first, next: 'limit=10&page=2' });
  assert.deepEqual(await linksOf('page=2&limit=10'), { first, prev: first, next: 'limit=10&page=3' });
  assert.equal((await linksOf('page=4&limit=5')).next, 'limit=5&page=5', 'it begins at the deepest offset');
  const { nextCursor, links } = await linked('offset=1&limit=20');
  assert.equal(links.next, `limit=20&cursor=${nextCursor}`);

  const lengths: number[] = [];
  for (let cursor = '', hasMore = true; hasMore;) {
    const page = await linked(`limit=1${cursor}`);
    ({ hasMore } = page);
    const { length } = page.nextCursor ?? assert.fail();
    lengths.push(length);
    assert.equal(page.links.next !== undefined, hasMore && length <= 2048, `${length} characters`);
    cursor = `&cursor=${page.nextCursor}`;
  }
  assert.ok(lengths.includes(2048) && lengths.some((length) => length > 2048));
});
