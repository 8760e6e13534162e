import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyedServer } from '../support/access/keyed.ts';

interface Listed {
  readonly name: string;
  readonly links: Readonly<Record<string, string>>;
}

/** The links of orders, and of users, for a key that may do this. */
const LINKS: Readonly<Record<string, readonly [orders: string, users: string]>> = {
  all: ['page stream partitions values changes exports', 'page'],
  read: ['page values', 'page'],
  stream: ['stream partitions', ''],
  export: ['exports', ''],
  changes: ['changes', ''],
  metrics: ['', ''],
};

test('a key is shown the links that it may follow, and no others', async (t) => {
  const keys = Object.keys(LINKS).map((name) => ({ name, ...(name !== 'all' && { actions: [name] }) }));
  const rows = [1, 2, 3].map((n) => ({ _id: `row-${n}`, status: 'paid', n }));
  const server = await keyedServer(t, 'sqlite', keys, [{ name: 'orders', rows, indexes: [['status']] }]);
  for (const [name, [ofOrders, ofUsers]] of Object.entries(LINKS)) {
    const { resources } = (await (await server.as(name, '/resources')).json()) as { resources: Listed[] };
    const linksOf = (one: string) => resources.find((listed) => listed.name === one)?.links ?? {};
    assert.equal(Object.keys(linksOf('orders')).join(' '), ofOrders, name);
    assert.equal(Object.keys(linksOf('users')).join(' '), ofUsers, name);
    for (const link of Object.values({ ...linksOf('orders'), users: linksOf('users').page ?? '/livez' })) {
      const answer = await server.as(name, `${link}${link.includes('?') ? '&' : '?'}`, { method: 'HEAD' });
      assert.ok(answer.ok, `${name}: ${link} is ${answer.status}`);
    }
  }
});

test('on MongoDB, only a key that opens a part is shown no changes where the collection keeps no pre-images', async (t) => {
  const keys = [
    { name: 'whole' },
    { name: 'hides', hide: { orders: ['n'] } },
    { name: 'part', where: { orders: { status: 'paid' } } },
  ];
  const rows = [1, 2, 3].map((n) => ({ _id: `row-${n}`, status: 'paid', n }));
  const server = await keyedServer(t, 'mongodb', keys, [{ name: 'orders', rows, indexes: [['status']] }]);
  if (!server) return;
  for (const [name, status] of [
    ['whole', 200],
    ['hides', 403],
    ['part', 403],
  ] as const) {
    const { resources } = (await (await server.as(name, '/resources')).json()) as { resources: Listed[] };
    const link = resources.find((listed) => listed.name === 'orders')?.links.changes;
    assert.equal((await server.as(name, '/orders/changes', { method: 'HEAD' })).status, status, name);
    assert.equal(link, status === 200 ? '/orders/changes' : undefined, name);
  }
});
