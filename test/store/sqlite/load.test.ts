import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import type { Load, OwnedCollection } from '../../../src/store/store.ts';
import { expectedItems, inCategory, makeItems, insertItems, type Item } from '../../support/store/items.ts';
import { openFor, openRaw } from '../../support/store/sqlite/sqlite.ts';
import { NEVER, PLENTY, assertChain, readRows } from '../../support/store/reading.ts';
import { readRow } from '../../../src/store/row.ts';
import { temporaryFolder } from '../../support/directory.ts';

const BY_ID = { sort: '_id', direction: 1 } as const;
const PLANS = [
  BY_ID,
  { sort: 'price', direction: -1 },
  { sort: 'price', direction: 1, ...inCategory('b') },
] as const;
const SIZE = { rows: 1_000, bytes: PLENTY };

async function openIn(t: TestContext, directory: string): Promise<OwnedCollection> {
  return (await openFor(t, directory)).items;
}

/** Begins a load, which must be possible, and refuses no row. */
async function loadInto(items: OwnedCollection): Promise<Load> {
  return (await items.load?.('fail', () => assert.fail())) ?? assert.fail('the store begins a load');
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

test('a write during a load waits for the end of the load, and then keeps the conflict rule', async (t) => {
  const directory = await temporaryFolder(t);
  const [items, others] = [await openIn(t, directory), await openIn(t, directory)];
  const rows = makeItems(60);
  const load = await loadInto(items);
  await addAll(load, rows.slice(0, 40));
  let isWritten = false;
  const insert = insertItems(others, rows.slice(30), 'skip');
  void insert.finally(() => (isWritten = true));
  await assertNotReady(others, rows[0]?.id ?? assert.fail());
  assert.equal(isWritten, false);
  assert.equal(await others.load?.('skip', () => assert.fail()), null, 'one load is under way');
  await load.finish();
  const { written, skipped } = await insert;
  assert.deepEqual([written, skipped], [20, 10]);
  assert.equal(await others.load?.('skip', () => assert.fail()), null, 'there are rows');
  await assertWhole(items, rows);
});

test('a load that replaces rows begins when another load has ended, and no reader finds it between old and new rows', async (t) => {
  const directory = await temporaryFolder(t);
  const [items, others] = [await openIn(t, directory), await openIn(t, directory)];
  const [before, after] = [makeItems(60), makeItems(100).slice(60)];
  const first = await loadInto(items);
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
  const directory = await temporaryFolder(t);
  const items = await openIn(t, directory);
  const rows = makeItems(200);
  const load = await loadInto(items);
  await addAll(load, rows);
  await load.abandon();
  await assertEmpty(items, rows[0]?.id ?? assert.fail());
  const again = await loadInto(items);
  await addAll(again, rows);
  await again.finish();
  await assertWhole(items, rows);
});
