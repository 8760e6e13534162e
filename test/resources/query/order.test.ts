import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Int32, type Document } from '../../../src/store/bson.ts';
import { resourceServer } from '../../support/resources/resources.ts';
import type { StoreName, TestServer } from '../../support/process/server.ts';

const ROWS: readonly Document[] = Array.from({ length: 30 }, (_, n) => ({
  _id: new Int32(n),
  status: n % 3 === 0 ? 'paid' : 'open',
  total: new Int32((n * 7) % 30),
  place: new Int32(n % 5),
}));
const INDEXES = [['status', 'total'], ['place']];

interface Page {
  readonly data: readonly { readonly id: number }[];
  readonly page: { readonly sort?: string; readonly nextCursor: string; readonly hasMore: boolean };
}

async function pageOf(server: TestServer, query: string): Promise<Page> {
  const answer = await server.get(`/orders?${query}`);
  assert.equal(answer.status, 200, query);
  return (await answer.json()) as Page;
}

const PAID = ROWS.filter(({ status }) => status === 'paid')
  .toSorted((a, b) => Number(a.total) - Number(b.total))
  .map(({ _id }) => Number(_id));

for (const store of ['sqlite', 'mongodb'] satisfies StoreName[])
  describe(`queries without an order on ${store}`, () => {
    test('the order of the index that fits is taken and named, and a cursor keeps it', async (t) => {
      const server = await resourceServer(t, store, { name: 'orders', rows: ROWS, indexes: INDEXES });
      if (!server) return;
      const ids: number[] = [];
      for (let query = 'status=paid&limit=3'; query !== '';) {
        const { data, page } = await pageOf(server, query);
        assert.equal(page.sort, 'total_asc');
        ids.push(...data.map(({ id }) => id));
        query = page.hasMore ? `status=paid&limit=3&cursor=${page.nextCursor}` : '';
      }
      assert.deepEqual(ids, PAID);

      const stream = await server.get('/orders/stream?status=paid');
      assert.equal(stream.headers.get('sorted-by'), 'total_asc');
      const lines = (await stream.text()).trim().split('\n');
      assert.deepEqual(
        lines.map((line) => (JSON.parse(line) as { id: number }).id),
        PAID,
      );
    });

    test('the order of ids is the first choice, and is not named', async (t) => {
      const server = await resourceServer(t, store, { name: 'orders', rows: ROWS, indexes: INDEXES });
      if (!server) return;
      const { data, page } = await pageOf(server, 'place=2&limit=3');
      assert.deepEqual([data.map(({ id }) => id), page.sort], [[2, 7, 12], undefined]);
      const first = await pageOf(server, 'status=paid&sort=total_asc&limit=2');
      assert.equal(first.page.sort, undefined);
      const again = await pageOf(server, `status=paid&limit=2&cursor=${first.page.nextCursor}`);
      assert.deepEqual(
        again.data.map(({ id }) => id),
        PAID.slice(2, 4),
      );
    });

    test('parts and changes need the order of ids, and a refusal begins with the nearest query', async (t) => {
      const server = await resourceServer(t, store, { name: 'orders', rows: ROWS, indexes: INDEXES });
      if (!server) return;
      const refusals = [
        [
          '/orders/partitions?status=paid',
          /^No index answers this query\. Filter by total first\. Indexes answer/,
        ],
        ['/orders/changes?status=paid', /^No index answers this query\. Filter by total first\./],
        ['/orders?sort=total_asc', /^No index answers this query\. Filter by status first\. Indexes answer/],
        ['/orders?status=paid&sort=place_asc', /Use sort=total_asc\. .*(createIndex|sluice index)/],
        ['/orders?unit%20price=1', /(\{"unit price":1,"_id":1\}\)|sluice index orders 'unit price')$/],
        ['/orders?status=paid&sort=id_asc', /\. Use sort=total_asc\. Indexes answer/],
      ] as const;
      for (const [path, detail] of refusals) {
        const answer = await server.get(path);
        const problem = (await answer.json()) as { code: string; detail: string };
        assert.equal(problem.code, 'not-indexed', path);
        assert.match(problem.detail, detail, path);
      }
    });
  });
