import assert from 'node:assert/strict';
import { jsonOf, textOf, type Page } from '../../support/answers.ts';
import { keyedServer, type KeyGiven, type Rows } from '../../support/access/keyed.ts';
import { onStores } from '../../support/process/each-server.ts';

const ORDERS: Rows = {
  name: 'orders',
  rows: Array.from({ length: 40 }, (_, n) => ({ _id: n, tenant: n % 2 ? 'acme' : 'other', total: n % 5 })),
  indexes: [['tenant'], ['tenant', 'total']],
};
const keyOf = (tenant: string): KeyGiven => ({
  name: tenant,
  where: { orders: { tenant } },
  hide: { orders: ['tenant'] },
});

onStores(
  (t, store) => keyedServer(t, store, [keyOf('acme'), keyOf('other')], [ORDERS]),
  (test) => {
    test("a cursor of another key moves within the rows of one's own", async (server) => {
      for (const asked of ['limit=5', 'limit=5&sort=total_desc', 'limit=3&total=2', 'limit=4&total.gte=2']) {
        const { page } = (await jsonOf(server.as('acme', `/orders?${asked}`))) as Page;
        for (const path of ['/orders', '/orders/stream']) {
          const query = path === '/orders' ? asked : asked.replace('limit=', 'limit=10');
          const text = await textOf(server.as('other', `${path}?${query}&cursor=${page.nextCursor}`));
          const ids = [...text.matchAll(/"id":(\d+)/g)].map(([, id]) => Number(id));
          assert.ok(ids.length > 0 && ids.every((id) => id % 2 === 0), `${path}?${query}: ${ids.join()}`);
        }
      }
    });
  },
);
