import assert from 'node:assert/strict';
import { jsonOf, textOf } from '../support/answers.ts';
import { onStores } from '../support/process/each-server.ts';
import { resourceServer } from '../support/resources/resources.ts';

interface Listed {
  readonly name: string;
  readonly rows?: number;
  readonly queries: readonly { readonly filters: readonly string[]; readonly sort: string | null }[];
  readonly links: Readonly<Record<string, string>>;
  readonly aliases?: readonly { readonly name: string; readonly for: string; readonly type: string }[];
}

const ORDERS = { name: 'orders', rows: [{ _id: 'a', size: 1 }], indexes: [['size']] };

onStores(
  (t, store) => resourceServer(t, store, ORDERS, { SAMPLE: 'on' }),
  (test) => {
    test('GET /resources also lists items and users, and each form of query that it names is answered', async (server) => {
      const { resources } = (await jsonOf(server.get('/resources'))) as { resources: Listed[] };
      assert.deepEqual(
        resources.map(({ name, rows: count }) => [name, count]),
        [
          ['orders', 1],
          ['items', 53_940],
          ['users', undefined],
        ],
      );
      assert.deepEqual(
        resources.map(({ aliases }) => aliases?.map(({ name, for: asked, type }) => [name, asked, type])),
        [
          undefined,
          [
            ['category', 'category', 'string'],
            ['min_price', 'price.gte', 'number'],
            ['max_price', 'price.lte', 'number'],
          ],
          undefined,
        ],
      );
      for (const { queries, links } of resources) {
        assert.ok(queries.length > 0);
        for (const { filters, sort } of queries) {
          const asked = new URLSearchParams(filters.map((path): [string, string] => [path, '1']));
          if (links.stream !== undefined && sort !== null) asked.set('sort', `${sort}_desc`);
          await textOf(server.get(`${links.page}?${asked.toString()}`));
        }
        for (const link of Object.values(links))
          assert.equal((await fetch(server.url + link, { method: 'HEAD' })).status, 200, link);
      }
    });
  },
);
