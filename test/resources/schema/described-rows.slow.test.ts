import { Ajv2020 } from 'ajv/dist/2020.js';
import assert from 'node:assert/strict';
import type { Store } from '../../../src/store/store.ts';
import { bearer, keyedServer } from '../../support/access/keyed.ts';
import { jsonOf, textOf } from '../../support/answers.ts';
import { onStores, sharedByStore } from '../../support/process/each-server.ts';
import { ORDER_INDEXES, ordersOf } from '../../support/resources/orders.ts';
import { withOverrides } from '../../support/store/with-overrides.ts';

const ROWS = ordersOf(2_000).map((row) => (row.status === 'new' ? { ...row, ofNew: 1 } : row));
const ORDERS = { name: 'orders', rows: ROWS, indexes: [...ORDER_INDEXES, ['status']] };
const KEYS = [
  { name: 'all' },
  { name: 'blind', resources: ['orders'], hide: { orders: ['customer.card', 'note'] } },
  { name: 'paid', resources: ['orders'], where: { orders: { status: 'paid' } }, hide: { orders: ['ref'] } },
  { name: 'streams', resources: ['orders'], actions: ['stream'] },
];

interface Document {
  readonly paths: Readonly<
    Record<string, { readonly get: { readonly parameters: readonly { readonly name: string }[] } }>
  >;
  readonly components: {
    readonly schemas: Readonly<Record<string, { readonly properties: Readonly<Record<string, unknown>> }>>;
  };
}

/** How often rows of orders were read. */
let reads = 0;

function counted(store: Store): Store {
  return withOverrides(store, {
    open: async (declaration, may) => {
      const rows = await store.open(declaration, may);
      return withOverrides(rows, {
        read: (...call) => {
          if (declaration.name === 'orders') reads++;
          return rows.read(...call);
        },
      });
    },
  });
}

const servers = sharedByStore((t, store) => keyedServer(t, store, KEYS, [ORDERS], {}, { tapStore: counted }));

onStores(servers, (test) => {
  const documentOf = async (
    server: { as: (name: string, path: string) => Promise<Response> },
    name: string,
  ) => (await jsonOf(server.as(name, '/openapi.json'))) as Document;

  test('the document has the fields and kinds of each resource, and its rows are valid by them', async (server) => {
    const { components, paths } = await documentOf(server, 'all');
    const { Row_orders: row, Item: item } = components.schemas;
    assert.deepEqual(row?.properties, {
      id: { type: 'string', pattern: '^[0-9a-f]{24}$' },
      status: { type: 'string' },
      createdAt: { type: 'string', format: 'date-time' },
      total: { type: 'integer', format: 'int64' },
      customer: { type: 'object', properties: { country: { type: 'string' }, card: { type: 'string' } } },
      note: { type: 'string' },
      ofNew: { type: 'integer', format: 'int64' },
      ref: { anyOf: [{ type: 'integer', format: 'int64' }, { type: 'string' }] },
    });
    assert.deepEqual(item?.properties.price, { type: 'number' });
    assert.ok(!Object.keys(paths).some((path) => /^\/(explorer|docs|clients\/)|^\/$/.test(path)));
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(row);
    for (const line of (await textOf(server.as('all', '/orders/stream'))).trim().split('\n'))
      assert.ok(validate(JSON.parse(line)), line);
  });

  test('a key sees only the fields that it may, of the rows that it may', async (server) => {
    const blind = (await documentOf(server, 'blind')).components.schemas.Row_orders;
    assert.deepEqual(blind?.properties.customer, {
      type: 'object',
      properties: { country: { type: 'string' } },
    });
    assert.ok(!('note' in blind.properties) && 'ref' in blind.properties);
    const paid = (await documentOf(server, 'paid')).components.schemas.Row_orders;
    assert.deepEqual(
      Object.keys(paid?.properties ?? {}).filter((name) => ['ref', 'ofNew', 'note'].includes(name)),
      ['note'],
    );
    const streams = await documentOf(server, 'streams');
    assert.equal(streams.paths['/orders'], undefined);
    assert.ok('total' in (streams.components.schemas.Row_orders?.properties ?? {}));
    assert.doesNotMatch(await textOf(fetch(`${server.url}/openapi.json`)), /Row_orders|"\/orders/);
  });

  test('a look at rows is kept: later documents read none until the store lists its indexes again', async (server) => {
    const first = await server.as('all', '/openapi.json');
    const before = reads;
    for (let n = 0; n < 40; n++) {
      const again = await server.as('all', '/openapi.json');
      assert.equal(again.headers.get('etag'), first.headers.get('etag'));
    }
    // A look reads 6 places for the rows, and 8 for the kinds of filters.
    assert.ok(reads - before <= 2 * 14, `40 documents read ${reads - before} times`);
  });

  test('one row comes with the fields asked for, and none that the key hides', async (server) => {
    const id = '000000000000000000000001';
    const row = (name: string, fields: string) => server.as(name, `/orders/${id}?fields=${fields}`);
    assert.equal(
      await textOf(row('all', 'total,customer.card')),
      `{"id":"${id}","total":856,"customer":{"card":"secret1"}}`,
    );
    assert.equal(
      await textOf(row('blind', 'total,customer.card')),
      `{"id":"${id}","total":856,"customer":{}}`,
    );
    const tag = (await row('all', 'total')).headers.get('etag') ?? '';
    const same = { headers: { ...bearer('all'), 'if-none-match': tag } };
    assert.equal((await fetch(`${server.url}/orders/${id}?fields=total`, same)).status, 304);
    assert.equal((await fetch(`${server.url}/orders/${id}`, same)).status, 200);
    assert.equal((await row('all', 'a..b')).status, 400);
    assert.equal((await server.as('all', `/orders/${id}?limit=1`)).status, 400);
    const { paths } = await documentOf(server, 'all');
    assert.ok(paths['/orders/{id}']?.get.parameters.some(({ name }) => name === 'fields'));
  });
});
