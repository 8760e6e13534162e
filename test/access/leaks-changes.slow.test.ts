import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { problemOf, textOf } from '../support/answers.ts';
import { keyedServer, type KeyedServer, type KeyGiven, type Rows } from '../support/access/keyed.ts';
import { keepImages, openParts, tableOf, type Table } from '../support/store/parts.ts';
import type { StoreName } from '../support/process/server.ts';

const ORDERS: Rows = {
  name: 'orders',
  rows: [
    { _id: 'own-1', tenant: 'acme', status: 'new' },
    { _id: 'FOREIGN-1', tenant: 'FOREIGN', status: 'new' },
  ],
  indexes: [['tenant'], ['tenant', 'status']],
};
const ACME: KeyGiven = { name: 'acme', where: { orders: { tenant: 'acme' } } };
const KEYS: readonly KeyGiven[] = [
  ACME,
  { name: 'other', where: { orders: { tenant: 'other' } } },
  { ...ACME, name: 'hides', hide: { orders: ['status', 'lines.margin'] } },
  { ...ACME, name: 'blind', hide: { orders: ['tenant'] } },
  { name: 'sees-all', hide: { orders: ['status', 'lines.margin'] } },
  { name: 'all' },
];

interface Tally {
  readonly cursor: string;
}
type Line = Readonly<
  Partial<{ id: string; removed: { readonly id: string }; checkpoint: Tally; end: Tally }>
>;

const linesOf = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);

/** The cursor in the end line of an answer. */
function cursorIn(text: string): string {
  return linesOf(text).at(-1)?.end?.cursor ?? assert.fail(text);
}

/** The ids of the rows of an answer, and of the removed ones with a minus. */
const idsIn = (text: string) =>
  linesOf(text).flatMap(({ id, removed }) => id ?? (removed ? [`-${removed.id}`] : []));

/** A server whose keys open parts of its orders. */
const opened = (t: TestContext, store: StoreName, keys = KEYS) => openParts(t, store, keys, ORDERS);

/** Fails when a text, or the content of a token in it, has what is hidden. */
function assertNoLeak(text: string, hidden = /FOREIGN/): void {
  const tokens = (text.match(/[A-Za-z0-9_-]{12,}/g) ?? []).map((one) => Buffer.from(one, 'base64url'));
  for (const one of [text, ...tokens.map((token) => token.toString('latin1'))])
    assert.doesNotMatch(one, hidden);
}

/** Returns the ids of what changed since the last call. No answer has what is hidden. */
function reader(server: KeyedServer, name: string, hidden?: RegExp): () => Promise<string[]> {
  let since = '';
  return async () => {
    const answer = await server.as(name, `/orders/changes${since}`);
    const text = await textOf(answer);
    assertNoLeak(`${[...answer.headers].join('\n')}\n${text}`, hidden);
    since = `?since=${cursorIn(text)}`;
    return idsIn(text);
  };
}

/** Foreign rows come, change, go, and come again. */
async function foreignHistory(table: Table): Promise<void> {
  await table.remove('FOREIGN-2');
  await table.put({ _id: 'FOREIGN-2', tenant: 'FOREIGN' });
  await table.set('FOREIGN-2', { n: 1 });
  await table.remove('FOREIGN-2');
  await table.put({ _id: 'FOREIGN-2', tenant: 'FOREIGN', n: 2 });
  await table.put({ _id: 'FOREIGN-2', tenant: 'FOREIGN-3' });
}

for (const store of ['sqlite', 'mongodb'] as const) {
  test(`${store}: changes of a part reveal nothing about foreign rows`, async (t) => {
    const at = await opened(t, store);
    if (!at) return;
    const { server, table, writeElsewhere } = at;
    const stream = await server.as('acme', '/orders/stream');
    await stream.text();
    const from = stream.headers.get('changes-from') ?? '';
    assert.notEqual(from, '');

    await foreignHistory(table);
    for (const query of ['', '&limit=1', '&wait=1', '&fields=id']) {
      const text = await textOf(server.as('acme', `/orders/changes?since=${from}${query}`));
      assertNoLeak(text);
      assert.deepEqual(idsIn(text), []);
    }
    const wide = await server.as('all', '/orders/changes?tenant=acme');
    const before = cursorIn(await wide.text());
    await foreignHistory(table);
    const after = await server.as('all', `/orders/changes?tenant=acme&since=${before}&limit=1`);
    const forged = cursorIn(await after.text());
    if (store === 'mongodb') assert.throws(() => assertNoLeak(forged), 'a token of an event holds its id');
    assert.equal((await server.as('acme', `/orders/changes?since=${forged}`)).status, 400);
    const foreignPlace = await server.as('acme', `/orders/changes?since=${before}`);
    assert.equal(foreignPlace.status, 400, 'a place of another set');
    // A cursor holds nothing of the part, by which guesses could be tested. What comes is bounded by the reader's own.
    const others = await server.as('other', `/orders/changes?since=${from}`);
    assert.doesNotMatch(await others.text(), /own-/);

    await table.set('FOREIGN-1', { tenant: 'acme' });
    await table.set('own-1', { tenant: 'FOREIGN' });
    await table.put({ _id: 'own-2', tenant: 'acme' });
    await table.put({ _id: 'own-3', tenant: 'acme' });
    await table.remove('own-3');
    const mine = await server.as('acme', `/orders/changes?since=${from}`);
    assert.deepEqual(idsIn(await mine.text()).sort(), ['-own-1', '-own-3', 'FOREIGN-1', 'own-2']);
    await table.remove('FOREIGN-1');

    const abort = new AbortController();
    const now = cursorIn(await textOf(server.as('acme', '/orders/changes')));
    const live = await server.as('acme', `/orders/changes?since=${now}`, {
      headers: { accept: 'text/event-stream' },
      signal: abort.signal,
    });
    assert.equal(live.status, 200);
    await writeElsewhere();
    await foreignHistory(table);
    await writeElsewhere();
    await table.put({ _id: 'own-9', tenant: 'acme' });
    let text = '';
    for await (const chunk of live.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (/own-9[^]*event: checkpoint/.test(text)) break;
    }
    abort.abort();
    assertNoLeak(text);
    assert.doesNotMatch(text, /removed":\{/);
  });

  test(`${store}: a change of hidden fields alone is not reported`, async (t) => {
    const at = await opened(t, store);
    if (!at) return;
    const { server, table } = at;
    const lines = (margin: number) => [{ sku: 'a', margin }, { sku: 'b' }];
    await table.put({ _id: 'own-2', tenant: 'acme', status: 'new', lines: lines(1) });
    const own = reader(server, 'hides', /status|margin/);
    const all = reader(server, 'sees-all', /status|margin/);
    const expect = async (ofPart: readonly string[], foreign: readonly string[], what: string) => {
      assert.deepEqual(await own(), ofPart, what);
      assert.deepEqual((await all()).sort(), [...ofPart, ...foreign].sort(), `${what}, all rows`);
    };
    await expect([], [], 'from now on');

    await table.set('own-1', { status: 'paid' });
    await table.set('own-2', { lines: lines(2) });
    await table.put({ _id: 'own-2', tenant: 'acme', status: 'gone', lines: lines(3) });
    await expect([], [], 'hidden fields, also in a row that is replaced');
    await table.set('own-2', { status: 'more', n: 1 });
    await expect(['own-2'], [], 'a shown one among hidden ones');
    await table.set('own-2', { n: 2 });
    await table.set('own-2', { n: 1, status: 'x' });
    await expect(['own-2'], [], 'there and back');
    await table.set('own-2', { lines: [{ sku: 'c', margin: 3 }, { sku: 'b' }] });
    await expect(['own-2'], [], 'a shown field beside a hidden one');
    await table.set('FOREIGN-1', { status: 'y' });
    await expect([], [], 'a foreign row');
    await table.set('FOREIGN-1', { n: 4 });
    await expect([], ['FOREIGN-1'], 'a shown field of a foreign row');
    await table.remove('own-1');
    await expect(['-own-1'], [], 'a removal');
    await table.set('own-2', { tenant: 'FOREIGN' });
    assert.deepEqual([await own(), await all()], [['-own-2'], ['own-2']], 'a row that leaves');
  });

  test(`${store}: rows enter and leave the part by a value that the key does not see`, async (t) => {
    const at = await opened(t, store);
    if (!at) return;
    const { server, table } = at;
    const next = reader(server, 'blind', /tenant|FOREIGN/);
    assert.deepEqual(await next(), []);
    await table.set('own-1', { tenant: 'FOREIGN' });
    assert.deepEqual(await next(), ['-own-1']);
    await table.set('own-1', { tenant: 'acme' });
    assert.deepEqual(await next(), ['own-1']);
    await table.set('FOREIGN-1', { tenant: 'FOREIGN-4' });
    assert.deepEqual(await next(), []);
  });
}

test('cursors of parts in the embedded store do not reveal how much changed', async (t) => {
  const opening = await opened(t, 'sqlite');
  if (!opening) return;
  const { server } = opening;
  const cursorOf = async (name: string) => cursorIn(await textOf(server.as(name, '/orders/changes')));
  assert.equal(
    await cursorOf('all'),
    await cursorOf('all'),
    'one place, one cursor: a comparison would show it',
  );
  assert.notEqual(await cursorOf('acme'), await cursorOf('acme'));
  const sealed = Buffer.from(await cursorOf('acme'), 'base64url');
  for (let at = 0; at < sealed.length; at++) {
    const forged = Buffer.from(sealed);
    forged[at] = (forged[at] ?? 0) ^ 1;
    const answer = await server.as('acme', `/orders/changes?since=${forged.toString('base64url')}`);
    assert.equal(answer.status, 400, `byte ${at}`);
  }
});

test('the embedded store has the history of a part from the first key on that opened any', async (t) => {
  const at = await opened(t, 'sqlite', [ACME]);
  if (!at) return;
  const { server, table } = at;
  const cursor = cursorIn(await textOf(server.as('acme', '/orders/changes')));
  await table.set('own-1', { status: 'paid' });
  assert.equal(await server.rewrite([ACME, { ...ACME, name: 'late', hide: { orders: ['status'] } }]), true);
  const changes = async (name: string) =>
    idsIn(await textOf(server.as(name, `/orders/changes?since=${cursor}`)));
  assert.deepEqual(await changes('late'), [], 'only a hidden field has changed');
  assert.deepEqual(await changes('acme'), ['own-1']);
});

test('the server refuses changes of a part if the collection keeps no pre-images', async (t) => {
  const server = await keyedServer(t, 'mongodb', KEYS, [ORDERS]);
  if (!server) return;
  for (const name of ['acme', 'hides', 'sees-all']) {
    for (const path of ['/orders/changes', '/orders/stream?follow=true']) {
      const { status, detail } = await problemOf(server.as(name, path));
      assert.equal(status, 403, `${name} ${path}`);
      assert.doesNotMatch(detail, /collMod|runCommand/);
    }
    const stream = await server.as(name, '/orders/stream');
    await textOf(stream);
    assert.equal(stream.headers.get('changes-from'), null);
  }
});

const NESTED: Rows = {
  name: 'orders',
  rows: [{ _id: 'own', customer: { id: 7 }, region: 'eu' }],
  indexes: [['customer.id'], ['region'], ['deleted'], ['customer.id', 'region']],
};
const NESTED_KEYS: readonly KeyGiven[] = [
  { name: 'number', where: { orders: { 'customer.id': 'num:7' } } },
  { name: 'nothing', where: { orders: { deleted: 'null:' } } },
  { name: 'both', where: { orders: { 'customer.id': 'num:7', region: 'eu' } } },
];

for (const store of ['sqlite', 'mongodb'] as const) {
  test(`${store}: keys with a nested number, null and two values in where read their changes`, async (t) => {
    const at = await openParts(t, store, NESTED_KEYS, NESTED);
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
}

test('a place from before the collection kept pre-images has expired', async (t) => {
  const at = await openParts(t, 'mongodb', NESTED_KEYS, NESTED);
  if (!at) return;
  const { server, table } = at;
  const keep = (enabled: boolean) => keepImages(t, server.mongo, 'orders', enabled);
  const first = await textOf(server.as('number', '/orders/changes'));
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

for (const store of ['sqlite', 'mongodb'] as const)
  test(`${store}: an export of a part of the items gives the place where its changes begin`, async (t) => {
    const keys = [{ name: 'music', where: { items: { category: 'music' } }, hide: { items: ['note'] } }];
    const server = await keyedServer(t, store, keys, []);
    if (!server) return;
    const items = tableOf(server.store.items);
    await items.put({ _id: 'a', category: 'music', price: 1 });
    await items.put({ _id: 'b', category: 'FOREIGN', price: 1 });
    await keepImages(t, server.mongo, 'items');
    const { id } = await server.exported('music', { format: 'ndjson' });
    const file = await server.as('music', `/exports/${id}/file`);
    assert.deepEqual(idsIn(await textOf(file)), ['a']);
    await items.put({ _id: 'b', category: 'FOREIGN', price: 2 });
    await items.put({ _id: 'a', category: 'music', price: 1, note: 'hidden' });
    await items.put({ _id: 'c', category: 'music', price: 3 });
    const since = file.headers.get('changes-from');
    const text = await textOf(server.as('music', `/items/changes?since=${since}`));
    assertNoLeak(text, /FOREIGN|hidden/);
    assert.deepEqual(idsIn(text), ['c'], 'of the part, and with more than a hidden field');
  });
