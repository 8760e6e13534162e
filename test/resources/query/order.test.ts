import assert from 'node:assert/strict';
import { Int32, type Document } from '../../../src/store/values/bson.ts';
import { idsIn, jsonOf, linesOf, pagesOf, problemOf, type Page } from '../../support/answers.ts';
import { resourceServer } from '../../support/resources/resources.ts';
import type { TestServer } from '../../support/process/server.ts';
import { onStores, sharedByStore } from '../../support/process/each-server.ts';

const ROWS: readonly Document[] = Array.from({ length: 30 }, (_, n) => ({
  _id: new Int32(n),
  status: n % 3 === 0 ? 'paid' : 'open',
  total: new Int32((n * 7) % 30),
  place: new Int32(n % 5),
  'unit price': new Int32(n),
  customer: { country: 'NL', 'vat id': null },
}));
const INDEXES = [['status', 'total'], ['place']];

interface Row {
  readonly id: number;
}

async function pageOf(server: TestServer, query: string): Promise<Page<Row>> {
  return (await jsonOf(server.get(`/orders?${query}`))) as Page<Row>;
}

const PAID = ROWS.filter(({ status }) => status === 'paid')
  .toSorted((a, b) => Number(a.total) - Number(b.total))
  .map(({ _id }) => Number(_id));

/** Parts of refusals of queries that name fields which no row has. None has a line for an index. */
const UNKNOWN = [
  ['totl=3', /has a field "totl"; the nearest is total\./],
  ['sort=Total_asc', /has a field "Total"; the nearest is total\./],
  ['customer.contry=NL', /has a field "customer\.contry"; the nearest is customer\.country\./],
  [
    'status.ne=paid',
    /has a field "status\.ne", and it ends in no operator: these are \.eq \.in \.gte \.gt \.lte \.lt\./,
  ],
  ['status!=paid', /has a field "status!", and it ends in no operator/],
  ['status%5Bne%5D=paid', /has a field "status\[ne\]", and it ends in no operator/],
  ['weather=3', /has a field "weather"\. A field that only other rows have can be declared/],
] as const;

onStores(
  sharedByStore((t, store) => resourceServer(t, store, { name: 'orders', rows: ROWS, indexes: INDEXES })),
  (test, store) => {
    test('the order of the index that fits is taken and named, and a cursor keeps it', async (server) => {
      const ids: number[] = [];
      for await (const { data, page } of pagesOf<Row>(server, '/orders?status=paid&limit=3')) {
        assert.equal(page.sort, 'total_asc');
        ids.push(...data.map(({ id }) => id));
      }
      assert.deepEqual(ids, PAID);

      const stream = await server.get('/orders/stream?status=paid');
      assert.equal(stream.headers.get('sorted-by'), 'total_asc');
      assert.deepEqual(idsIn(await linesOf(stream)), PAID);
    });

    test('the order of ids is the first choice, and is not named', async (server) => {
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

    test('a refusal advises no index for a field that no row has', async (server) => {
      for (const [query, detail] of UNKNOWN) {
        const problem = await problemOf(server.get(`/orders?${query}`));
        assert.equal(problem.code, 'not-indexed', query);
        assert.match(problem.detail, detail, query);
        assert.doesNotMatch(problem.detail, /createIndex|sluice index/, query);
      }
      const known = await problemOf(server.get('/orders?customer.vat%20id=null:'));
      assert.match(known.detail, /createIndex|sluice index/, 'rows have the field, as null');
      const values = await problemOf(server.get('/orders/values?field=plac'));
      assert.match(values.detail, /has a field "plac"; the nearest is place\./);
    });

    test('parts and changes need the order of ids, and a refusal begins with the nearest query', async (server) => {
      const refusals = [
        [
          '/orders/partitions?status=paid',
          /^No index answers this query\. Filter by total first\. Indexes answer/,
        ],
        ['/orders/changes?status=paid', /^No index answers this query\. Filter by total first\./],
        ['/orders?sort=total_asc', /^No index answers this query\. Filter by status first\. Indexes answer/],
        [
          '/orders?status=paid&sort=place_asc',
          store === 'sqlite'
            ? /Use sort=total_asc\. .*sluice index orders status,place/
            : /Use sort=total_asc\. .*getCollection\("orders"\)\.createIndex\(\{"status":1,"place":1,"_id":1\}\)/,
        ],
        ['/orders?status=paid&sort=id_asc', /\. Use sort=total_asc\. Indexes answer/],
        ['/orders?unit%20price=1', /(\{"unit price":1,"_id":1\}\)|sluice index orders 'unit price')$/],
      ] as const;
      for (const name of ['heartbeat', 'checkpoints'])
        assert.equal((await problemOf(server.get(`/orders?${name}=5`))).code, 'unknown-parameter', name);
      for (const [path, detail] of refusals) {
        const problem = await problemOf(server.get(path));
        assert.equal(problem.code, 'not-indexed', path);
        assert.match(problem.detail, detail, path);
      }
    });
  },
);
