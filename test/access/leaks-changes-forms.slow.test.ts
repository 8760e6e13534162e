import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cursorIn, idsIn } from '../support/access/change-lines.ts';
import { awaited } from '../support/exports/exports.ts';
import { bearer, keyedServer, type KeyedServer, type KeyGiven, type Rows } from '../support/access/keyed.ts';
import { keepImages, openParts, tableOf } from '../support/store/parts.ts';

const ROWS: Rows = {
  name: 'orders',
  rows: [{ _id: 'own', customer: { id: 7 }, region: 'eu' }],
  indexes: [['customer.id'], ['region'], ['deleted'], ['customer.id', 'region']],
};
const KEYS: readonly KeyGiven[] = [
  { name: 'number', where: { orders: { 'customer.id': 'num:7' } } },
  { name: 'nothing', where: { orders: { deleted: 'null:' } } },
  { name: 'both', where: { orders: { 'customer.id': 'num:7', region: 'eu' } } },
];

/** Returns the changes since the last call. */
function reader(server: KeyedServer, name: string, resource = 'orders'): () => Promise<string[]> {
  let since = '';
  return async () => {
    const answer = await server.as(name, `/${resource}/changes${since}`);
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    since = `?since=${cursorIn(text)}`;
    return idsIn(text);
  };
}

for (const store of ['sqlite', 'mongodb'] as const) {
  test(`${store}: keys with a nested number, null and two values in where read their changes`, async (t) => {
    const at = await openParts(t, store, KEYS, ROWS);
    if (!at) return;
    const { server, table } = at;
    const [number, nothing, both] = ['number', 'nothing', 'both'].map((name) => reader(server, name));
    const expect = async (expected: readonly (readonly string[])[], what: string) =>
      assert.deepEqual([await number?.(), await nothing?.(), await both?.()], expected, what);
    await expect([[], [], []], 'from now on');
    await table.set('own', { region: 'us' });
    await expect([['own'], ['own'], ['-own']], 'one of two values');
    await table.set('own', { customer: { id: 7.5 } });
    await expect([['-own'], ['own'], []], 'a number beside it');
    await table.put({ _id: 'own', customer: { id: 7 }, region: 'eu', deleted: true });
    await expect([['own'], ['-own'], ['own']], 'a value in place of none');
    await table.put({ _id: 'own', customer: { id: '7' }, region: 'eu', deleted: null });
    await expect([['-own'], ['own'], ['-own']], 'a text in place of the number');
    await table.remove('own');
    await expect([[], ['-own'], []], 'a removal');
  });

  test(`${store}: a key for some items reads their changes, and its export gives their start`, async (t) => {
    const keys = [{ name: 'music', where: { items: { category: 'music' } }, hide: { items: ['note'] } }];
    const server = await keyedServer(t, store, keys, []);
    if (!server) return;
    const items = tableOf(server.store.items);
    await items.put({ _id: 'a', category: 'music', price: 1 });
    await items.put({ _id: 'b', category: 'FOREIGN', price: 1 });
    await keepImages(t, server.mongo, 'items');
    const ordered = await server.as('music', '/exports', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ format: 'ndjson' }),
    });
    assert.equal(ordered.status, 202);
    const { id } = (await ordered.json()) as { readonly id: string };
    await awaited(server.url, id, undefined, bearer('music'));
    const answer = await server.as('music', `/exports/${id}/file`);
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    assert.deepEqual(idsIn(text), ['a']);
    const since = answer.headers.get('changes-from');
    assert.ok(since);
    await items.put({ _id: 'b', category: 'FOREIGN', price: 2 });
    await items.put({ _id: 'a', category: 'music', price: 1, note: 'hidden' });
    await items.put({ _id: 'c', category: 'music', price: 3 });
    const changes = await server.as('music', `/items/changes?since=${since}`);
    assert.deepEqual(idsIn(await changes.text()), ['c']);
  });
}

test('a place from before the collection kept pre-images has expired', async (t) => {
  const at = await openParts(t, 'mongodb', KEYS, ROWS);
  if (!at) return;
  const { server, table } = at;
  const keep = (enabled: boolean) => keepImages(t, server.mongo, 'orders', enabled);
  const first = await (await server.as('number', '/orders/changes')).text();
  await keep(false);
  await table.set('own', { region: 'us' });
  await keep(true);
  const answer = await server.as('number', `/orders/changes?since=${cursorIn(first)}`);
  assert.equal(answer.status, 410, await answer.text());
  const next = reader(server, 'number');
  await next();
  await table.set('own', { region: 'eu' });
  assert.deepEqual(await next(), ['own']);
});
