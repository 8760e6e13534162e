import assert from 'node:assert/strict';
import { test } from 'node:test';
import { askableOf } from '../../../src/resources/query/not-indexed.ts';
import type { Index } from '../../../src/store/indexes.ts';
import {
  filterPaths,
  filtersBefore,
  inSomeOrder,
  missingFilters,
  sortsOf,
  withFilter,
  withoutFilter,
  withRange,
  withSort,
} from '../../../src/web/page/allowed-queries.ts';
import type { Resource } from '../../../src/web/page/resource.ts';
import { snippetsFor } from '../../../src/web/page/snippets.ts';
import { readView, viewQuery, wholeOf, wordsOf, type View } from '../../../src/web/page/view.ts';

const indexOn = (...paths: readonly string[]): Index => ({
  name: paths.join('_'),
  keys: paths.map((path) => ({ path, sign: 1 })),
  isUnique: paths.length === 1 && paths[0] === '_id',
});
/** The forms of query as GET /resources lists them. */
const FORMS = askableOf([
  indexOn('_id'),
  indexOn('status', 'createdAt', '_id'),
  indexOn('a', 'b', 'c', '_id'),
  indexOn('total', '_id'),
]).map(({ filters, ...form }) => ({ ...form, filters: [...filters] }));
const ORDERS: Resource = {
  name: 'orders',
  queries: FORMS,
  kinds: [],
  missing: [],
  refused: [],
  formats: [],
  links: { page: '/orders', stream: '/orders/stream' },
};
const ITEMS: Resource = {
  ...ORDERS,
  name: 'items',
  aliases: [
    { name: 'category', for: 'category', type: 'string' },
    { name: 'min_price', for: 'price.gte', type: 'number' },
    { name: 'max_price', for: 'price.lte', type: 'number' },
  ],
};
const WHOLE = wholeOf(ORDERS);
const filtered = (...pairs: readonly [string, string][]): View => ({ ...WHOLE, equals: new Map(pairs) });
/** A view with filters of these paths. */
const by = (...paths: readonly string[]) => filtered(...paths.map((path): [string, string] => [path, 'x']));

test('the page offers the orders that an index has under the filters', () => {
  assert.deepEqual(sortsOf(WHOLE), ['id', 'total']);
  assert.deepEqual(sortsOf(by('status')), ['createdAt']);
  assert.deepEqual(sortsOf(by('createdAt', 'status')), ['id']);
  assert.deepEqual(sortsOf(by('b', 'a')), ['c']);
  assert.deepEqual(sortsOf(by('a', 'status')), []);
});

test('the page offers filters, and says which others an index wants with them', () => {
  assert.deepEqual(filterPaths(ORDERS), ['status', 'createdAt', 'a', 'b', 'c', 'total']);
  assert.deepEqual(missingFilters(by('createdAt')), ['status']);
  assert.deepEqual(missingFilters(by('b')), ['a']);
  assert.deepEqual(missingFilters(by('total')), []);
  assert.deepEqual(missingFilters(by('total', 'a')), []);
  assert.deepEqual(missingFilters(WHOLE, 'createdAt'), ['status']);
  assert.deepEqual(missingFilters(by('a'), 'createdAt'), []);
  assert.deepEqual(filtersBefore(WHOLE, 'status'), []);
  assert.equal(filtersBefore(WHOLE, 'createdAt'), null);
  assert.deepEqual(filtersBefore(by('status'), 'createdAt'), ['status']);
  assert.deepEqual(filtersBefore(by('status'), 'total'), []);
});

test('a filter that no index has with the others replaces them, and the order becomes one that an index has', () => {
  const paid = withFilter({ ...WHOLE, sort: 'total', low: '5' }, 'status', 'paid');
  assert.deepEqual([[...paid.equals], paid.sort, paid.low], [[['status', 'paid']], 'createdAt', '']);
  const both = withFilter(paid, 'createdAt', '2026-01-10');
  assert.deepEqual([[...both.equals.keys()], both.sort], [['status', 'createdAt'], 'id']);
  assert.deepEqual([...withFilter(both, 'total', '7').equals.keys()], ['total']);
  assert.deepEqual([...withoutFilter(both, 'createdAt').equals.keys()], ['status']);
  assert.equal(withSort(withRange(paid, 'createdAt', '1', '2'), 'createdAt').direction, -1);
  assert.deepEqual(withSort(withRange(WHOLE, 'total', '1', '2'), 'id'), WHOLE);
});

test('the address of a view is its query, and reads back as the same view', () => {
  const views: readonly (readonly [View, string])[] = [
    [WHOLE, ''],
    [{ ...WHOLE, direction: -1 }, 'sort=id_desc'],
    [
      { ...filtered(['status', 'größe & +1']), sort: 'createdAt', low: '2026-01-01', high: '2026-02-01' },
      'status=gr%C3%B6%C3%9Fe+%26+%2B1&createdAt.gte=2026-01-01&createdAt.lte=2026-02-01&sort=createdAt_asc',
    ],
    [filtered(['limit', '5'], ['a.eq', 'x'], ['page', '']), 'limit.eq=5&a.eq.eq=x&page.eq='],
    [
      { ...filtered(['category', 'Fair']), resource: ITEMS, sort: 'price', direction: -1, low: '0.10' },
      'category=Fair&min_price=0.10&sort=price_desc',
    ],
  ];
  for (const [view, text] of views) {
    assert.equal(viewQuery(view).toString(), text);
    assert.deepEqual(readView(view.resource, new URLSearchParams(text)), view, text);
  }
  const { sort } = inSomeOrder(readView(ORDERS, new URLSearchParams('status=paid')));
  assert.equal(sort, 'createdAt', 'without an order, that which the server takes');
  assert.equal(
    wordsOf({ ...filtered(['status', 'str:42'], ['note', 'null:']), sort: 'total', low: '5' }),
    'status is 42, note is empty, total from 5',
  );
});

test('no program that the page offers has a key in it', () => {
  const url = 'http://127.0.0.1:3000/orders/stream?status=paid';
  for (const withKey of [false, true])
    for (const { title, code } of snippetsFor({ url, name: 'or"ders', withKey, version: '0.3.0' })) {
      assert.ok(code.includes(url), title);
      assert.equal(/SLUICE_KEY|FILE_WITH_KEY/.test(code), withKey, title);
      assert.ok(!code.includes('or"ders'), 'a name that a shell would read otherwise is changed');
    }
});
