import assert from 'node:assert/strict';
import { Decimal128, Double, Int32, Long, type Document } from '../../../src/store/bson.ts';
import { crc32 } from '../../../src/pipeline/crc32.ts';
import { catalogue, expectedIds } from '../../support/resources/catalogue.ts';
import { fetchUntilCut, startCutter, type Cutter } from '../../support/faults/cutter.ts';
import { onServers } from '../../support/process/each-server.ts';

const CUTS = process.env.LONG ? 500 : 40;
const SORTS = ['id_asc', 'id_desc', 'price_asc', 'price_desc'];

/** The `after` that continues after a row, built from its line alone. */
function afterOf(line: string, sort: string): string {
  const id = String((JSON.parse(line) as { id: string | number }).id);
  const price = /,"price":([^,}]*)/.exec(line)?.[1] ?? 'null'; // its digits, not those of a double
  return sort.startsWith('price') ? `${price},${id}` : id;
}

function wholeLines(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.lastIndexOf('\n') + 1);
}

/** Pulls a stream in pieces, each cut after a random number of bytes, and joins them. */
async function pullThroughCuts(
  cutter: Cutter,
  path: string,
  sort: string,
  cuts: number,
  size: number,
): Promise<Buffer> {
  const kept: Buffer[] = [];
  let from = '';
  for (let cut = 0; ; cut++) {
    const after = cut < cuts ? 1 + Math.floor((Math.random() * size * 2) / cuts) : Infinity;
    cutter.nextAfter = () => after;
    const { bytes, whole } = await fetchUntilCut(`${cutter.url}${path}${from}`);
    const piece = whole ? bytes : wholeLines(bytes);
    kept.push(piece);
    if (whole) return Buffer.concat(kept);
    const last = piece.toString().split('\n').at(-2);
    if (last !== undefined) from = `&after=${encodeURIComponent(afterOf(last, sort))}`;
  }
}

onServers('stores', (test, { store }) => {
  test('a client that is cut at any byte resumes after its last whole row, and the joined pieces are the uncut stream', async (server, t) => {
    await server.insert(catalogue(4000).map(({ document }) => ({ ...document, filler: 'x'.repeat(150) })));
    const cutter = await startCutter(t, server.url);
    const cases = SORTS.flatMap((sort) => [`sort=${sort}`, `sort=${sort}&category=music`]);
    for (const query of cases) {
      const path = `/items/stream?${query}`;
      const uncut: Buffer = Buffer.from(await (await server.get(path)).arrayBuffer());
      const sort = new URLSearchParams(query).get('sort') ?? '';
      const joined = await pullThroughCuts(cutter, path, sort, CUTS / cases.length, uncut.length);
      assert.equal(crc32(joined), crc32(uncut), query);
      assert.equal(joined.length, uncut.length, query);
    }
  });

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
          const text = await (await server.get(`/items/stream?${query}&after=${after}&fields=n`)).text();
          const ids = text
            .split('\n')
            .slice(0, -1)
            .map((line) => (JSON.parse(line) as { id: string }).id);
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
    const text = await (await server.get('/items/stream?sort=price_asc&fields=price&after=20,moved')).text();
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
      [`after=${'9'.repeat(300)}`, 'invalid-parameter'],
    ];
    for (const [query, code] of cases) {
      const response = await server.get(`/items/stream?${query}`);
      assert.deepEqual(
        [response.status, ((await response.json()) as { code: string }).code],
        [400, code],
        query,
      );
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
      const uncut = await (await server.get(`/items/stream?sort=${sort}`)).text();
      const lines = uncut.split('\n').slice(0, -1);
      assert.equal(lines.length, documents.length);
      for (const [n, line] of lines.entries()) {
        const id = /^{"id":"?([^",]*)/.exec(line)?.[1] ?? '';
        const price = /"price":([^,}]*)/.exec(line)?.[1] ?? '';
        const after = encodeURIComponent(sort.startsWith('price') ? `${price},${id}` : id);
        const rest = await (await server.get(`/items/stream?sort=${sort}&after=${after}`)).text();
        assert.equal(
          rest,
          lines
            .slice(n + 1)
            .map((row) => `${row}\n`)
            .join(''),
          `${sort} ${line}`,
        );
      }
    }
  });
});
