import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test, type TestContext } from 'node:test';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { Int32 } from '../../../src/store/bson.ts';
import { importItems } from '../../../src/import/import.ts';
import type { OwnedCollection, Load, OnConflict } from '../../../src/store/store.ts';
import {
  expectedItems,
  inCategory,
  makeItem,
  makeItems,
  type Item,
  insertItems,
} from '../../support/store/items.ts';
import { openDirectory, openRaw, testDirectory } from '../../support/store/sqlite/sqlite.ts';
import { NEVER, PLENTY, assertChain, readRows } from '../../support/store/reading.ts';
import { readRow } from '../../../src/store/row.ts';

const BY_ID = { sort: '_id', direction: 1 } as const;
const PLANS = [
  BY_ID,
  { sort: 'price', direction: -1 },
  { sort: 'price', direction: 1, ...inCategory('b') },
] as const;
const SIZE = { rows: 1_000, bytes: PLENTY };

async function openIn(t: TestContext, directory: string): Promise<OwnedCollection> {
  const store = await openDirectory(directory);
  t.after(() => store.close());
  return store.items;
}

/** Begins a load, which must be possible. Rows that the store refuses go to `refused`. */
async function loadInto(
  items: OwnedCollection,
  onConflict: OnConflict,
  refused: number[] = [],
): Promise<Load> {
  const load = await items.load?.(onConflict, (at) => refused.push(at));
  assert.ok(load, 'the store begins a load');
  return load;
}

async function addAll(load: Load, items: readonly Item[]): Promise<void> {
  for (const [at, { bytes }] of items.entries()) await load.add(bytes, at + 1);
}

async function assertEmpty(items: OwnedCollection, id: Item['id']): Promise<void> {
  const { rows, more } = await readRows(items, BY_ID, {}, SIZE);
  assert.deepEqual([rows.length, more], [0, false]);
  assert.equal((await items.count(BY_ID, 'exact', NEVER)).rows, 0);
  assert.equal((await items.count({ ...BY_ID, ...inCategory('b') }, 'exact', NEVER)).rows, 0);
  assert.equal(await readRow(items, makeBookmark({ _id: id }), NEVER), null);
  assert.deepEqual(await items.split(BY_ID, 4, NEVER), []);
}

async function assertWhole(items: OwnedCollection, expected: readonly Item[]): Promise<void> {
  for (const plan of PLANS) await assertChain(items, plan, {}, SIZE, expectedItems(expected, plan));
}

/** Orders in which rows may come. */
const ORDERS: Readonly<Record<string, (items: Item[]) => Item[]>> = {
  'in order of id': (items) => expectedItems(items, BY_ID),
  'in descending order of id': (items) => expectedItems(items, BY_ID).reverse(),
  'in any order': (items) => items,
};

for (const [name, orderOf] of Object.entries(ORDERS))
  for (const onConflict of ['skip', 'replace', 'fail'] as const)
    test(`a load of rows ${name} keeps the row that "${onConflict}" says, and every index entry of it`, async (t) => {
      const directory = await testDirectory(t);
      const items = await openIn(t, directory);
      const first = orderOf(makeItems(500));
      const again = first
        .filter((_, n) => n % 3 === 0)
        .map(({ id }, n) => makeItem(id, n % 2 === 0 ? 'b' : 'new', new Int32(n % 7), 'again'));
      const third = again.slice(0, 20).map(({ id }) => makeItem(id, 'third', new Int32(3), 'third'));
      const rows = [...first.slice(0, 300), ...again.slice(0, 40), ...first.slice(300), ...again.slice(40)];
      rows.push(...third);
      const kept = new Map<string, Item>();
      const refused: number[] = [];
      for (const row of rows) {
        const id = String(row.id);
        if (onConflict === 'replace' || !kept.has(id)) kept.set(id, row);
      }
      const load = await loadInto(items, onConflict, refused);
      await addAll(load, rows);
      const { written, skipped } = await load.finish();
      const repeated = rows.length - kept.size;
      assert.deepEqual(
        [written, skipped, refused.length],
        [
          onConflict === 'replace' ? rows.length : kept.size,
          onConflict === 'skip' ? repeated : 0,
          onConflict === 'fail' ? repeated : 0,
        ],
      );
      for (const at of refused) assert.notEqual(kept.get(String(rows[at - 1]?.id)), rows[at - 1]);
      await assertWhole(items, [...kept.values()]);
      const file = openRaw(directory);
      assert.deepEqual([file.count(), file.faults()], [kept.size, []]);
      file.close();
    });

/** Every read rejects, so no reader takes a part of the rows, or none, for the whole. */
async function assertNotReady(items: OwnedCollection, id: Item['id']): Promise<void> {
  const inCategoryB = { ...BY_ID, ...inCategory('b') };
  for (const read of [
    () => items.read(BY_ID, {}, SIZE, NEVER),
    () => items.read(BY_ID, { skip: 100_000 }, SIZE, NEVER),
    () => items.count(BY_ID, 'exact', NEVER),
    () => items.count(inCategoryB, 'estimated', NEVER),
    () => readRow(items, makeBookmark({ _id: id }), NEVER),
    () => items.split(BY_ID, 4, NEVER),
  ])
    await assert.rejects(read, { code: 'not-ready', status: 503 });
}

test('a store with rows, or with a load under way, begins no other load', async (t) => {
  const directory = await testDirectory(t);
  const [items, others] = [await openIn(t, directory), await openIn(t, directory)];
  const load = await loadInto(items, 'fail');
  const refuse = () => assert.fail();
  assert.equal(await others.load?.('skip', refuse), null);
  await addAll(load, makeItems(3));
  await load.finish();
  assert.equal(await others.load?.('skip', refuse), null);
});

test('a write during a load waits for the end of the load, and then keeps the conflict rule', async (t) => {
  const directory = await testDirectory(t);
  const [items, others] = [await openIn(t, directory), await openIn(t, directory)];
  const rows = makeItems(60);
  const load = await loadInto(items, 'fail');
  await addAll(load, rows.slice(0, 40));
  let isWritten = false;
  const insert = insertItems(others, rows.slice(30), 'skip');
  void insert.finally(() => (isWritten = true));
  await assertNotReady(others, rows[0]?.id ?? assert.fail());
  assert.equal(isWritten, false);
  await load.finish();
  const { written, skipped } = await insert;
  assert.deepEqual([written, skipped], [20, 10]);
  await assertWhole(items, rows);
});

test('a load that replaces rows begins when another load has ended, and no reader finds it between old and new rows', async (t) => {
  const directory = await testDirectory(t);
  const [items, others] = [await openIn(t, directory), await openIn(t, directory)];
  const [before, after] = [makeItems(60), makeItems(100).slice(60)];
  const first = await loadInto(items, 'fail');
  await addAll(first, before);
  let hasBegun = false;
  const begin = others.load?.('fail', () => assert.fail(), true);
  void begin?.then(() => (hasBegun = true));
  await assertNotReady(others, before[0]?.id ?? assert.fail());
  assert.equal(hasBegun, false);
  await first.finish();
  const load = (await begin) ?? assert.fail();
  assert.deepEqual(load.removed, { rows: 60, is: 'exact' });
  const opened = await openIn(t, directory);
  for (const reader of [items, others, opened]) await assertNotReady(reader, before[0]?.id ?? assert.fail());
  await addAll(load, after);
  await load.finish();
  for (const reader of [items, others, opened]) await assertWhole(reader, after);
  const file = openRaw(directory);
  assert.deepEqual([file.count(), file.faults()], [after.length, []]);
  file.close();
});

test('an abandoned load leaves an empty store, which can be loaded again', async (t) => {
  const directory = await testDirectory(t);
  const items = await openIn(t, directory);
  const rows = makeItems(200);
  const load = await loadInto(items, 'fail');
  await addAll(load, rows);
  await load.abandon();
  await assertEmpty(items, rows[0]?.id ?? assert.fail());
  const again = await loadInto(items, 'fail');
  await addAll(again, rows);
  await again.finish();
  await assertWhole(items, rows);
});

for (const [who, mark, silentMs] of [
  ['has ended on this machine', { host: hostname(), pid: 2 ** 22 + 1 }, 0],
  ['was silent for a minute on another machine', { host: 'elsewhere', pid: 1 }, 60_000],
] as const)
  test(`the load of a process that ${who} is undone by the next process that opens the store, and stops with an error`, async (t) => {
    const directory = await testDirectory(t);
    const rows = expectedItems(makeItems(50), BY_ID);
    const load = await loadInto(await openIn(t, directory), 'fail');
    await addAll(load, rows.slice(0, 25));
    const file = openRaw(directory);
    const set = file.sets.get('items');
    const loading = { ...(set.loading ?? assert.fail()), ...mark, process: 'another' };
    file.sets.put({ ...set, loading });
    file.connection.run('update sets set alive = ? where name = ?', Date.now() - silentMs, 'items');
    const items = await openIn(t, directory);
    await assertEmpty(items, rows[0]?.id ?? assert.fail());
    assert.deepEqual([file.count(), file.faults(), file.rows()], [0, [], []]);
    file.close();
    const some = rows.slice(0, 5);
    await insertItems(items, some);
    await assert.rejects(load.finish(), /another process took this load for ended/);
    await assert.rejects(load.abandon(), /another process took this load for ended/);
    await assertWhole(items, some);
  });

test('an interrupted import keeps the rows that it has read, and counts them', async (t) => {
  const directory = await testDirectory(t);
  const items = await openIn(t, directory);
  const rows = makeItems(100);
  const interrupt = new AbortController();
  async function* source() {
    for (const [at, { bytes }] of rows.entries()) {
      if (at === 70) interrupt.abort(new Error('interrupted'));
      yield await Promise.resolve({ at: at + 1, item: bytes });
    }
  }
  const run = importItems({
    ...{ open: () => Promise.resolve(items), source: source(), onConflict: 'fail', signal: interrupt.signal },
    progress: () => undefined,
    report: (at, reason) => assert.fail(`${at}: ${reason}`),
  });
  await assert.rejects(run, {
    name: 'ImportStopped',
    result: { read: 70, written: 70, skipped: 0, failed: 0 },
  });
  await assertWhole(items, rows.slice(0, 70));
});
