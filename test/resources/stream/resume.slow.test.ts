import assert from 'node:assert/strict';
import { Decimal128, Double, Int32, Long, type Document } from '../../../src/store/values/bson.ts';
import { idsIn, linesOf, problemOf, textOf } from '../../support/answers.ts';
import { catalogue, expectedIds } from '../../support/resources/catalogue.ts';
import { onServers } from '../../support/process/each-server.ts';

const SORTS = ['id_asc', 'id_desc', 'price_asc', 'price_desc'];

onServers('stores', (test, { store }) => {
  test('every row is a bookmark in every sort and filter, also when it was deleted', async (server) => {
    const rows = catalogue(500, 'string');
    await server.insert(rows.filter((_, n) => n % 5 !== 0).map(({ document }) => document));
    const left = rows.filter((_, n) => n % 5 !== 0);
    for (const sort of SORTS) {
      for (const category of [undefined, 'books']) {
        const all = expectedIds(rows, sort, category);
        const query = `sort=${sort}${category === undefined ? '' : `&category=${category}`}`;
        for (let n = 0; n < all.length; n += 7) {
          const row = rows.find(({ id }) => id === all[n]);
          const after = sort.startsWith('price') ? `${row?.price},${row?.id}` : String(row?.id);
          const ids = idsIn(await linesOf(server.get(`/items/stream?${query}&after=${after}&fields=n`)));
          const behind = all.slice(n + 1).filter((id) => left.some((other) => other.id === id));
          assert.deepEqual(ids, behind, `${query} after ${after}`);
        }
      }
    }
  });

  test('a row whose price changed since is a bookmark with its old price', async (server) => {
    await server.insert(
      [1, 2, 3, 4].map((price) => ({ _id: `a,${price}`, category: 'c', price: price * 10 })),
    );
    await server.insert([{ _id: 'moved', category: 'c', price: 99 }]);
    const text = await textOf(server.get('/items/stream?sort=price_asc&fields=price&after=20,moved'));
    assert.equal(text, '{"id":"a,3","price":30}\n{"id":"a,4","price":40}\n{"id":"moved","price":99}\n');
    const behindComma = await server.get('/items/stream?sort=price_asc&fields=price&after=30,a,3');
    assert.equal(await behindComma.text(), '{"id":"a,4","price":40}\n{"id":"moved","price":99}\n');
  });

  test('a value that cannot be a row is refused, and after excludes cursor', async (server) => {
    await server.insert([{ _id: 1, category: 'c', price: 1 }]);
    const cases: [query: string, code: string][] = [
      ['after=', 'invalid-parameter'],
      ['after=1&cursor=x', 'conflicting-parameters'],
      ['sort=price_asc&after=1', 'invalid-parameter'],
      ['sort=price_asc&after=01,1', 'invalid-parameter'],
      ['sort=price_asc&after=x,1', 'invalid-parameter'],
      ['sort=price_asc&after=1e9999,1', 'invalid-parameter'],
      [`after=${'9'.repeat(400)}`, 'invalid-parameter'],
    ];
    for (const [query, code] of cases) {
      const refused = await problemOf(server.get(`/items/stream?${query}`));
      assert.deepEqual([refused.status, refused.code], [400, code], query);
    }
  });

  test('ids and prices of several types and beyond 2^53 continue exactly', async (server) => {
    const large = 2n ** 60n;
    const prices: unknown[] = [
      new Long(large),
      new Long(large + 1n),
      new Long(large + 2n),
      new Double(2 ** 60),
      new Int32(7),
      new Double(7),
      new Double(0.1),
      new Double(0.1),
      new Double(1e-7),
      new Double(-1.5e300),
      ...(store === 'mongodb'
        ? ['0.1', '0.10', '1E+3', '-0', '1000'].map((d) => Decimal128.fromString(d))
        : []),
    ];
    const documents = prices.flatMap((price, n): Document[] => [
      { _id: new Long(large + BigInt(n)), category: 'c', price },
      { _id: `s${n}`, category: 'c', price },
      { _id: n, category: 'c', price },
    ]);
    await server.insert(documents);
    for (const sort of SORTS) {
      const lines = await linesOf(server.get(`/items/stream?sort=${sort}`));
      assert.equal(lines.length, documents.length);
      for (const [n, line] of lines.entries()) {
        const id = /^{"id":"?([^",]*)/.exec(line)?.[1] ?? '';
        const price = /"price":([^,}]*)/.exec(line)?.[1] ?? '';
        const after = encodeURIComponent(sort.startsWith('price') ? `${price},${id}` : id);
        const rest = await linesOf(server.get(`/items/stream?sort=${sort}&after=${after}`));
        assert.deepEqual(rest, lines.slice(n + 1), `${sort} ${line}`);
      }
    }
  });
});
