import assert from 'node:assert/strict';
import { test as plain } from 'node:test';
import { openForm } from '../../../src/resources/query/form.ts';
import { idsIn, jsonOf, linesOf, problemOf, textOf, type Page } from '../../support/answers.ts';
import { keyedServer } from '../../support/access/keyed.ts';
import { onStores, sharedByStore } from '../../support/process/each-server.ts';
import { resourcesFile } from '../../support/resources/resources.ts';
import { Int32, type Document } from '../../../src/store/values/bson.ts';

const ROWS: readonly Document[] = Array.from({ length: 20 }, (_, n) => ({
  _id: new Int32(n),
  customer: { id: new Int32(n % 4) },
  total: new Int32(n),
  privy: new Int32(n % 2),
}));
const ORDERS = {
  name: 'orders',
  rows: ROWS,
  indexes: [['customer.id', 'total'], ['customer.id'], ['total'], ['privy']],
};
const ALIASES = { customer: 'customer.id', from: 'total.gte', before: 'total.lt', whisper: 'privy' };
const KEYS = [
  { name: 'ada', actions: ['read', 'stream', 'export', 'changes'] },
  { name: 'bob', actions: ['read', 'stream'], hide: { orders: ['privy'] } },
];

interface Listed {
  readonly resources: readonly {
    readonly name: string;
    readonly aliases?: readonly { readonly name: string }[];
  }[];
}

onStores(
  sharedByStore(async (t, store) => {
    const RESOURCES_FILE = await resourcesFile(t, { resources: { orders: { aliases: ALIASES } } });
    return keyedServer(t, store, KEYS, [ORDERS], { EXPOSE: '', RESOURCES_FILE });
  }),
  (test) => {
    test('an alias asks for what it stands for, on pages, in streams, values, changes and exports', async (server) => {
      const ids = async (query: string) =>
        ((await jsonOf(server.as('ada', `/orders?${query}`))) as Page<{ id: number }>).data.map(
          ({ id }) => id,
        );
      assert.deepEqual(await ids('customer=3'), [3, 7, 11, 15, 19]);
      assert.deepEqual(await ids('customer=3'), await ids('customer.id=3'));
      assert.deepEqual(await ids('from=5&before=8'), [5, 6, 7]);
      const lines = await linesOf(await server.as('ada', '/orders/stream?from=17'));
      assert.deepEqual(idsIn(lines).map(Number), [17, 18, 19]);
      const values = (query: string) => textOf(server.as('ada', `/orders/values?field=total&${query}`));
      assert.equal(await values('customer=3'), await values('customer.id=3'));
      assert.match(await values('customer=3'), /"value":3\b/);
      const changes = (query: string) => textOf(server.as('ada', `/orders/changes?${query}`));
      const [, cursor = ''] = /"cursor":"([^"]+)"/.exec(await changes('customer=3')) ?? [];
      for (const query of ['customer=3', 'customer.id=3'])
        assert.match(await changes(`${query}&since=${cursor}`), /"upToDate":true/, query);
      const other = await problemOf(server.as('ada', `/orders/changes?customer=2&since=${cursor}`));
      assert.equal(other.code, 'cursor-mismatch');
      const twice = await problemOf(server.as('ada', '/orders?customer=3&customer.id=3'));
      assert.equal(twice.code, 'duplicate-parameter');
      const { resources } = (await jsonOf(server.as('ada', '/resources'))) as Listed;
      const [orders] = resources.filter(({ name }) => name === 'orders');
      assert.deepEqual(
        orders?.aliases?.map(({ name }) => name),
        Object.keys(ALIASES),
      );
      const { file } = await server.exported('ada', { resource: 'orders', customer: 3 });
      assert.equal(file?.rows, 5);
    });

    test('for a key that hides the field, the alias is a name like any other', async (server) => {
      const { resources } = (await jsonOf(server.as('bob', '/resources'))) as Listed;
      const [orders] = resources.filter(({ name }) => name === 'orders');
      assert.ok(!orders?.aliases?.some(({ name }) => name === 'whisper'));
      const text = await (await server.as('bob', '/openapi.json')).text();
      assert.doesNotMatch(text, /privy|whisper/);
      const refused = await problemOf(server.as('bob', '/orders?whisper=1'));
      const other = await problemOf(server.as('bob', '/orders?nope=1'));
      assert.deepEqual(
        JSON.stringify({ ...refused, instance: '', requestId: '' }).replaceAll('whisper', 'nope'),
        JSON.stringify({ ...other, instance: '', requestId: '' }),
      );
    });
  },
);

plain('an alias that could mean something else is refused with its reason', () => {
  const wrong: [Record<string, string>, RegExp][] = [
    [{ limit: 'total' }, /the name of a parameter of the server/],
    [{ 'a.gte': 'total' }, /ends in an operator/],
    [{ id: 'total' }, /the name of the key/],
    [{ a: 'b', b: 'total' }, /stands for an alias/],
    [{ a: 'a' }, /stands for itself|stands for an alias/],
    [{ a: 'x..y' }, /empty name/],
  ];
  for (const [aliases, reason] of wrong) assert.throws(() => openForm('orders', aliases), reason);
  assert.equal(openForm('orders', { a: 'b.c', 'd.e': 'f.in' }).aliases?.length, 2);
});
