import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pageLinks } from '../../../src/resources/page/page.ts';
import type { PageQuery } from '../../../src/resources/page/parameters.ts';

const MAX_OFFSET = 100;
const LIMIT = 10;

/** The links of a page of 10 by relation, as their query. */
function linksOf(
  start: PageQuery['start'],
  { skip = 0, hasMore = false, cursor = null as string | null, asked = 'sort=price_asc' } = {},
): Record<string, string> {
  const query = { limit: LIMIT, skip, start } as PageQuery;
  const info = { limit: LIMIT, hasMore, nextCursor: cursor };
  const header = pageLinks('/items', new URLSearchParams(asked), query, info, MAX_OFFSET);
  const links = [...header.matchAll(/<([^>]*)>; rel="(\w+)"/g)];
  return Object.fromEntries(links.map(([, path = '', rel = '']) => [rel, path]));
}

test('a page by number links to the numbers beside it, and beyond the deepest offset by cursor', () => {
  const first = '/items?sort=price_asc&page=1';
  assert.deepEqual(linksOf({ style: 'page', page: 1 }), { first });
  const second = { skip: 10, hasMore: true, asked: 'sort=price_asc&page=2' };
  assert.deepEqual(linksOf({ style: 'page', page: 2 }, second), {
    first,
    prev: first,
    next: '/items?sort=price_asc&page=3',
  });
  const next = (skip: number) =>
    linksOf({ style: 'page', page: skip / LIMIT + 1 }, { skip, hasMore: true, cursor: 'abc' }).next;
  assert.equal(next(MAX_OFFSET - LIMIT), '/items?sort=price_asc&page=11');
  assert.equal(next(MAX_OFFSET), '/items?sort=price_asc&cursor=abc');
});

test('a page by cursor links to the next by cursor, but not by one that is too long for a head', () => {
  const next = (length: number) =>
    linksOf({ style: 'cursor', cursor: null } as never, { hasMore: true, cursor: 'c'.repeat(length) }).next;
  assert.equal(next(3), '/items?sort=price_asc&cursor=ccc');
  assert.ok(next(2048));
  assert.equal(next(2049), undefined);
});
