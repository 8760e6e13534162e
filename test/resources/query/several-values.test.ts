import assert from 'node:assert/strict';
import { Int32, type Document } from '../../../src/store/values/bson.ts';
import { idsIn, jsonOf, linesOf, pagesOf, problemOf, type Page } from '../../support/answers.ts';
import { onStores, sharedByStore } from '../../support/process/each-server.ts';
import type { TestServer } from '../../support/process/server.ts';
import { resourceServer } from '../../support/resources/resources.ts';

const STATUSES = ['paid', 'open', 'new', 'a,b', ''];
const ROWS: readonly Document[] = Array.from({ length: 60 }, (_, n) => ({
  _id: new Int32(n),
  status: STATUSES[n % STATUSES.length],
  total: new Int32((n * 7) % 60),
  size: n % 2 === 0 ? new Int32(7) : '7',
}));
const INDEXES = [['status'], ['status', 'total'], ['size'], ['total']];

interface Row {
  readonly id: number;
  readonly status: string;
}

/** The ids of the rows of statuses, in their order, and then by id or total. */
function idsOf(statuses: readonly string[], order: '_id' | 'total' = '_id', sign: 1 | -1 = 1): number[] {
  return statuses.flatMap((status) =>
    ROWS.filter((row) => row.status === status)
      .toSorted((a, b) => sign * (Number(a[order]) - Number(b[order])))
      .map(({ _id }) => Number(_id)),
  );
}

async function idsOfPages(server: TestServer, path: string, sort: string | undefined): Promise<number[]> {
  const ids: number[] = [];
  for await (const { data, page } of pagesOf<Row>(server, path)) {
    assert.equal(page.sort, sort, path);
    ids.push(...data.map(({ id }) => id));
  }
  return ids;
}

async function streamed(server: TestServer, query: string): Promise<number[]> {
  return idsIn(await linesOf(await server.get(`/orders/stream?${query}`))).map(Number);
}

onStores(
  sharedByStore((t, store) => resourceServer(t, store, { name: 'orders', rows: ROWS, indexes: INDEXES })),
  (test) => {
    test('rows come value by value, in the order of the values, on pages of any size', async (server) => {
      const wanted = idsOf(['new', 'paid']);
      for (const limit of [1, 5, 12, 13, 24, 1000]) {
        const path = `/orders?status.in=new,paid&limit=${limit}`;
        assert.deepEqual(await idsOfPages(server, path, 'status.in,id_asc'), wanted, path);
      }
      const { page } = (await jsonOf(server.get('/orders?status.in=new,paid,none&limit=24'))) as Page<Row>;
      assert.equal(page.hasMore, false, 'a value without rows is behind the last row');
    });

    test('the same text as page.sort asks for the order of an index behind each value', async (server) => {
      const sort = 'sort=status.in,total_desc';
      const path = `/orders?status.in=paid,missing,open&${sort}&limit=7`;
      assert.deepEqual(await idsOfPages(server, path, undefined), idsOf(['paid', 'open'], 'total', -1));
      const ranged = await streamed(server, `status.in=paid,open&${sort}&total.lte=20`);
      const below = idsOf(['paid', 'open'], 'total', -1).filter((id) => Number(ROWS[id]?.total) <= 20);
      assert.deepEqual(ranged, below);
    });

    test('offsets, numbers of pages and counts are of all values', async (server) => {
      const wanted = idsOf(['open', 'paid', 'new']);
      for (const [place, at] of [
        ['offset=11', 11],
        ['offset=12', 12],
        ['offset=30', 30],
        ['page=4', 30],
      ] as const) {
        const answer = server.get(`/orders?status.in=open,none,paid,new&limit=10&count=exact&${place}`);
        const { data, page } = (await jsonOf(answer)) as Page<Row>;
        assert.deepEqual(
          data.map(({ id }) => id),
          wanted.slice(at, at + 10),
          place,
        );
        assert.deepEqual([page.total, page.totalIs], [36, 'exact']);
      }
    });

    test('a stream resumes from each of its cursors, without a gap and without a row twice', async (server) => {
      const answer = await server.get('/orders/stream?status.in=new,open,paid&checkpoints=true&limit=100');
      assert.equal(answer.headers.get('sorted-by'), 'status.in,id_asc');
      await answer.text();
      const wanted = idsOf(['new', 'open', 'paid']);
      for (const limit of [1, 11, 12, 13, 24, 35]) {
        const first = await jsonOf(server.get(`/orders?status.in=new,open,paid&limit=${limit}`));
        const { page } = first as Page<Row>;
        const rest = await streamed(server, `status.in=new,open,paid&cursor=${page.nextCursor}`);
        assert.deepEqual(rest, wanted.slice(limit), `behind ${limit} rows`);
      }
    });

    test('parts hold each row once', async (server) => {
      const answer = await jsonOf(server.get('/orders/partitions?status.in=new,open&n=4'));
      const { partitions } = answer as { partitions: readonly { url: string }[] };
      assert.ok(partitions.length >= 3, `${partitions.length} parts`);
      const parts = await Promise.all(
        partitions.map(async ({ url }) => idsIn(await linesOf(server.get(url)))),
      );
      assert.deepEqual(parts.flat().sort(), idsOf(['new', 'open']).sort());
      assert.ok(Math.max(...parts.map(({ length }) => length)) <= 12, 'no part has half of the rows');
    });

    test('values have commas and may be empty in a JSON array, and come once', async (server) => {
      const list = encodeURIComponent('["a,b","","a,b"]');
      assert.deepEqual(await streamed(server, `status.in=${list}`), idsOf(['a,b', '']));
      assert.deepEqual(await streamed(server, 'status.in=paid,paid'), idsOf(['paid']));
      assert.deepEqual(await streamed(server, 'status.in=paid,str:paid'), idsOf(['paid']), 'one place');
      assert.deepEqual(await streamed(server, 'id.in=7,3,99,5'), [7, 3, 5]);
      assert.deepEqual(await streamed(server, 'id.in=7,3,5&status=open'), []);
    });

    test('a text is read as for one value', async (server) => {
      const problem = await problemOf(server.get('/orders?size.in=7,8'));
      assert.deepEqual([problem.code, problem.parameter], ['ambiguous-value', 'size']);
      const own = ROWS.flatMap(({ _id, size }) => (size === '7' ? [Number(_id)] : []));
      assert.deepEqual(await streamed(server, 'size.in=str:7,str:8'), own);
    });

    test('what cannot be answered is refused with the reason', async (server) => {
      const many = Array.from({ length: 101 }, (_, n) => `s${n}`).join(',');
      const refusals = [
        ['status.in=', 'invalid-parameter', /^status\.in has an empty value/],
        ['status.in=paid,', 'invalid-parameter', /An empty text is written in a JSON array/],
        [
          'status.in=%5B%5D',
          'invalid-parameter',
          /must be values separated by commas, or a JSON array of texts/,
        ],
        ['status.in=%5B1%5D', 'invalid-parameter', /a JSON array of texts/],
        [`status.in=${many}`, 'invalid-parameter', /100 different values at most; got 101/],
        ['status.in=a&status=b', 'conflicting-parameters', /^Give one of status and status\.in, not both/],
        ['status.in=a&size.in=b', 'conflicting-parameters', /^Only one field can have several values/],
        [
          'status.in=a&sort=total_asc',
          'conflicting-parameters',
          /Use sort=status\.in,total_asc, or leave sort out/,
        ],
        ['status.in=a&sort=status_asc', 'conflicting-parameters', /Use sort=status\.in,id_asc/],
        ['total.in=1,2&sort=total.in,size_asc', 'not-indexed', /^No index answers this query/],
        ['status.in=a&status.gte=b', 'not-indexed', /status has a value and a range/],
      ] as const;
      for (const [query, code, detail] of refusals) {
        const problem = await problemOf(server.get(`/orders?${query}`));
        assert.equal(problem.code, code, query);
        assert.match(problem.detail, detail, query);
      }
      for (const path of ['stream?after=3&', 'stream?follow=true&', 'values?field=total&']) {
        const problem = await problemOf(server.get(`/orders/${path}status.in=paid,open`));
        assert.equal(problem.code, 'conflicting-parameters', path);
      }
    });

    test('a cursor belongs to its values and their order', async (server) => {
      const { page } = (await jsonOf(server.get('/orders?status.in=paid,open&limit=3'))) as Page<Row>;
      for (const query of [
        'status.in=open,paid',
        'status.in=paid',
        'status=paid',
        'status.in=paid,open,new',
      ]) {
        const problem = await problemOf(server.get(`/orders?${query}&cursor=${page.nextCursor}`));
        assert.equal(problem.code, 'cursor-mismatch', query);
      }
    });
  },
);
