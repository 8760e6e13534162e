import assert from 'node:assert/strict';
import fc from '../../support/fast-check.ts';
import { Decimal128, Double, Int32, Long } from '../../../src/store/values/bson.ts';
import { compareValues } from '../../../src/store/values/order.ts';
import { pagesOf, textOf } from '../../support/answers.ts';
import { awaited, fileOf } from '../../support/exports/exports.ts';
import { compareDigits, exactDigits, shown, type Price } from '../../support/store/items.ts';
import { isBoundDigits, nearPrices } from '../../support/store/prices.ts';
import { type TestServer } from '../../support/process/server.ts';
import { onServers } from '../../support/process/each-server.ts';

interface Row {
  readonly id: number;
  readonly price: string;
}

/** Two rows of each price, in random order, in two categories. */
function makeRows(): { _id: Int32; category: string; price: Price }[] {
  const prices = [
    ...nearPrices(),
    ...nearPrices(),
    Decimal128.fromString('1E+6000'),
    Decimal128.fromString('-1E-6000'),
  ];
  return prices.map((price, n) => ({
    _id: new Int32((n * 7919) % 10_007),
    category: n % 3 === 0 ? 'a' : 'b',
    price,
  }));
}

/** Ids and prices of a JSON text with all digits, which JSON.parse does not keep. */
function rowsIn(text: string): Row[] {
  const found = text.matchAll(/\{"id":(-?\d+),"price":([^},]+)\}/g);
  return [...found].map(([, id, price]) => ({ id: Number(id), price: price ?? '' }));
}

async function rowsOf(server: TestServer, path: string): Promise<Row[]> {
  return rowsIn(await textOf(server.get(path)));
}

/** All pages of a query, each from the cursor of the previous one. Checks every hasMore. */
async function walk(server: TestServer, query: string, limit: number): Promise<Row[]> {
  const all: Row[] = [];
  for await (const { data, page, text } of pagesOf(server, `/items?fields=price&limit=${limit}&${query}`)) {
    assert.ok(!page.hasMore || data.length === limit, `${query}: a page before the last is full`);
    all.push(...rowsIn(text));
    assert.ok(all.length < 1_000, `${query}: the walk does not end`);
  }
  return all;
}

async function total(server: TestServer, query: string, mode: string): Promise<number> {
  const answer = await server.get(`/items?limit=1&count=${mode}&${query}`);
  const { page } = (await answer.json()) as { page: { total: number; totalIs: string } };
  assert.equal(page.totalIs, 'exact');
  return page.total;
}

/** All digits of the numbers that are shown as a bound: of the decimal, and of the double if it is shown so. Ascending. */
function shownAs(bound: string): string[] {
  const double = new Double(Number(bound));
  const isShown = Number.isFinite(double.value) && compareDigits(shown(double), bound) === 0;
  return [bound, ...(isShown ? [exactDigits(double)] : [])].sort(compareDigits);
}

const BOUNDS = [...new Set(nearPrices().flatMap((price) => [shown(price), exactDigits(price)]))].filter(
  isBoundDigits,
);
const query = fc.record(
  {
    min_price: fc.constantFrom(...BOUNDS),
    max_price: fc.constantFrom(...BOUNDS),
    category: fc.constantFrom('a', 'b'),
  },
  { requiredKeys: [] },
);

onServers('stores', (test, { store }) => {
  test('match a range of all numbers that show its bounds, and are ordered by their exact value, from any page', async (server) => {
    const rows = makeRows();
    await server.insert(rows);
    const sorted = [...rows].sort((a, b) => compareValues(a.price, b.price) || a._id.value - b._id.value);
    const full = await rowsOf(server, '/items/stream?sort=price_asc&fields=price');
    assert.deepEqual(
      full.map(({ id }) => id),
      sorted.map(({ _id }) => _id.value),
    );
    const exact = new Map(rows.map(({ _id, price }) => [_id.value, exactDigits(price)]));
    const categories = new Map(rows.map(({ _id, category }) => [_id.value, category]));
    const property = fc.asyncProperty(
      query,
      fc.boolean(),
      fc.integer({ min: 1, max: 9 }),
      async (asked, up, limit) => {
        const { min_price: low, max_price: high, category } = asked;
        const inside = full
          .filter(({ id }) => category === undefined || categories.get(id) === category)
          .filter(
            ({ id }) => low === undefined || compareDigits(exact.get(id) ?? '', shownAs(low)[0] ?? '') >= 0,
          )
          .filter(
            ({ id }) =>
              high === undefined || compareDigits(exact.get(id) ?? '', shownAs(high).at(-1) ?? '') <= 0,
          );
        const search = new URLSearchParams({ ...asked, sort: up ? 'price_asc' : 'price_desc' }).toString();
        const expected = up ? inside : [...inside].reverse();
        assert.deepEqual(await walk(server, search, limit), expected);
        assert.deepEqual(await rowsOf(server, `/items/stream?fields=price&${search}`), expected);
        const behind = `/items?fields=price&limit=${limit}&offset=${limit * 2}&${search}`;
        assert.deepEqual(await rowsOf(server, behind), expected.slice(limit * 2, limit * 3));
        assert.equal(await total(server, search, 'exact'), expected.length);
        if (store === 'mongodb') assert.equal(await total(server, search, 'estimated'), expected.length);
      },
    );
    await fc.assert(property, { numRuns: process.env.LONG ? 1_000 : 12 });
  });

  test('a cursor continues in the same range however it is written, and in no other', async (server) => {
    await server.insert(
      [1, 2, 3].map((n) => ({ _id: n, category: 'a', price: Decimal128.fromString(`20.0${n}`) })),
    );
    const first = await server.get('/items?limit=1&min_price=19.99');
    const { page } = (await first.json()) as { page: { nextCursor: string } };
    const status = async (low: string) =>
      (await server.get(`/items?min_price=${low}&cursor=${page.nextCursor}`)).status;
    assert.equal(await status('19.990'), 200);
    assert.equal(await status('1999e-2'), 200);
    assert.equal(await status('19.9900000000000001'), 400);
  });

  test('an export keeps every digit of its range', async (server) => {
    const prices = ['9007199254740992', '9007199254740993', '9007199254740994'];
    await server.insert(
      prices.map((digits, n) => ({ _id: n, category: 'a', price: Long.fromString(digits) })),
    );
    const posted = await fetch(`${server.url}/exports`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"min_price": 9007199254740993, "max_price": 1e400, "fields": ["price"]}',
    });
    assert.equal(posted.status, 202);
    const text = await posted.text();
    assert.match(text, /"min_price":9007199254740993,/);
    const { id } = JSON.parse(text) as { id: string };
    const file = (await fileOf(server.url, await awaited(server.url, id))).toString();
    assert.deepEqual(
      rowsIn(file).map(({ price }) => price),
      ['9007199254740993', '9007199254740994'],
    );
    const list = await (await server.get('/exports')).text();
    assert.match(list, /"min_price":9007199254740993,"max_price":1e400/);
  });

  test('a bound with more digits or a higher exponent than a price can have is refused by name', async (server) => {
    const many = '1.0000000000000000000000000000000001';
    for (const digits of [
      `${many}1`,
      '1e6145',
      '1e-6177',
      'NaN',
      'Infinity',
      '',
      '0x1',
      '1.',
      '1e99999999999',
    ]) {
      const answer = await server.get(`/items?min_price=${encodeURIComponent(digits)}`);
      const { code, detail, parameter } = (await answer.json()) as Record<string, string>;
      assert.deepEqual([answer.status, code, parameter], [400, 'invalid-parameter', 'min_price'], digits);
      assert.match(detail ?? '', /34 digits/);
    }
    for (const digits of ['1.000000000000000000000000000000001', '9e6144', '-0', '1e-6176', '1000e-1'])
      assert.equal((await server.get(`/items?min_price=${digits}`)).status, 200, digits);
    const posted = await fetch(`${server.url}/exports`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"min_price": ${many}1}`,
    });
    const { errors } = (await posted.json()) as { errors: { pointer: string }[] };
    assert.deepEqual([posted.status, errors.map(({ pointer }) => pointer)], [422, ['/min_price']]);
  });
});
