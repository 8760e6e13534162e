import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { CommandRefusal } from '../../../src/base/errors.ts';
import { Int32 } from '../../../src/store/values/bson.ts';
import type { OwnedCollection } from '../../../src/store/store.ts';
import { fillWith, startFill } from '../../support/store/filling.ts';
import {
  expectedItems,
  inCategory,
  insertItems,
  makeItem,
  makeItems,
  type Item,
} from '../../support/store/items.ts';
import { beforeInsert, ITEMS, openFor, openRaw } from '../../support/store/sqlite/sqlite.ts';
import { NEVER, PLENTY, assertChain } from '../../support/store/reading.ts';
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

async function assertWhole(items: OwnedCollection, expected: readonly Item[]): Promise<void> {
  for (const plan of PLANS) await assertChain(items, plan, {}, SIZE, expectedItems(expected, plan));
}

const bytesOf = (items: readonly Item[]) => items.map(({ bytes }) => bytes);

/** Nothing of a load is left in the file, and its indexes have what its rows have. */
function assertClean(directory: string, rows: number): void {
  const file = openRaw(directory);
  assert.deepEqual([file.count(), file.rows().length, file.faults()], [rows, rows, []]);
  assert.deepEqual([file.sets.get(ITEMS).imports ?? [], file.sets.discarded()], [[], []]);
  file.close();
}

for (const onConflict of ['fail', 'skip', 'replace'] as const)
  for (const isInOrder of [true, false])
    test(`rows that another process writes during a load stay, as "${onConflict}" says, when the load is ${isInOrder ? '' : 'not '}in order`, async (t) => {
      const directory = await temporaryFolder(t);
      const items = await openIn(t, directory);
      const others = await openIn(t, directory);
      const rows = makeItems(60);
      const loaded = expectedItems(rows.slice(0, 40), BY_ID);
      const fill = startFill(items, { onConflict });
      const given = isInOrder ? loaded : loaded.toReversed();
      fill.add(bytesOf(given));
      await fill.asks();
      const theirs = [
        ...given.slice(5, 8).map(({ id }) => makeItem(id, 'b', new Int32(7), 'theirs')),
        ...rows.slice(40),
      ];
      await insertItems(others, theirs);
      await assertWhole(others, theirs);
      fill.end();
      await fill.done;
      const theirIds = new Set(given.slice(5, 8));
      const expected =
        onConflict === 'replace' ? rows : [...theirs, ...loaded.filter((item) => !theirIds.has(item))];
      for (const reader of [items, others]) await assertWhole(reader, expected);
      assert.deepEqual(fill.result, {
        written: onConflict === 'replace' ? 40 : 37,
        skipped: onConflict === 'skip' ? 3 : 0,
      });
      assert.deepEqual(
        [...fill.refused].sort((a, b) => a - b),
        onConflict === 'fail' ? [6, 7, 8] : [],
      );
      assertClean(directory, 60);
    });

test('rows that come while all others are replaced or removed stay', async (t) => {
  const directory = await temporaryFolder(t);
  const items = await openIn(t, directory);
  const others = await openIn(t, directory);
  const rows = makeItems(100);
  for (const isCleared of [false, true]) {
    await insertItems(items, rows.slice(0, 30), 'skip');
    const fill = startFill(items, { replaces: true });
    fill.add(bytesOf(rows.slice(30, 60)));
    await fill.asks();
    await insertItems(others, rows.slice(60, 70));
    if (isCleared) await others.clear(NEVER);
    await insertItems(others, rows.slice(70));
    fill.end();
    await fill.done;
    const expected = isCleared ? [...rows.slice(30, 60), ...rows.slice(70)] : rows.slice(30);
    for (const reader of [items, others]) await assertWhole(reader, expected);
    assertClean(directory, expected.length);
  }
});

test('an import into a resource that another one fills is refused, one that adds rows beside others is not', async (t) => {
  const directory = await temporaryFolder(t);
  const items = await openIn(t, directory);
  const others = await openIn(t, directory);
  const rows = makeItems(60);
  const first = startFill(items);
  await first.asks();
  for (const replaces of [true, false])
    await assert.rejects(
      startFill(others, { replaces }).done,
      (error) =>
        error instanceof CommandRefusal &&
        /^Another import \(process \d+\) fills items: /.test(error.message),
    );
  first.add(bytesOf(rows.slice(0, 20)));
  first.end();
  await first.done;
  const adding = [startFill(items), startFill(others)];
  for (const fill of adding) await fill.asks();
  await assert.rejects(
    startFill(items, { replaces: true }).done,
    (error) => error instanceof CommandRefusal && error.message.includes('adds rows to items'),
  );
  for (const [n, fill] of adding.entries()) {
    fill.add(bytesOf(rows.slice(20 + 20 * n, 40 + 20 * n)));
    fill.end();
    await fill.done;
  }
  await assertWhole(items, rows);
  assertClean(directory, 60);
});

/** As if another container had begun the load that fills the items. */
function moveElsewhere(directory: string): void {
  const file = openRaw(directory);
  const set = file.sets.get(ITEMS);
  const imports = set.imports?.map((one) => ({ ...one, holder: { ...one.holder, space: 'elsewhere' } }));
  file.sets.put({ ...set, imports });
  file.close();
}

test('a load of a process that cannot be seen ends when its time is over, and does not go on then', async (t) => {
  const directory = await temporaryFolder(t);
  let now = Date.now();
  const items = await openIn(t, directory);
  const later = (await openFor(t, directory, { wallClock: () => now })).items;
  const rows = makeItems(40);
  await insertItems(items, rows.slice(0, 10));
  const lost = startFill(items, { replaces: true });
  lost.add(bytesOf(rows.slice(10, 20)));
  await lost.asks();
  moveElsewhere(directory);
  await assert.rejects(startFill(later, { replaces: true }).done, /^CommandRefusal: Another import/);
  now = Date.now() + 61_000;
  await fillWith(later, bytesOf(rows.slice(20)), { replaces: true });
  lost.end();
  await assert.rejects(lost.done, /was taken for one whose process had ended/);
  await assertWhole(items, rows.slice(20));
  assertClean(directory, 20);
});

test('a load whose time is over while its thread inserts rows says so too', async (t) => {
  const directory = await temporaryFolder(t);
  const items = await openIn(t, directory);
  const later = (await openFor(t, directory, { wallClock: () => Date.now() + 61_000 })).items;
  const rows = makeItems(20);
  const lost = startFill(items);
  await lost.asks();
  moveElsewhere(directory);
  // The load has looked at its lease by then.
  beforeInsert(t, () => fillWith(later, bytesOf(rows.slice(10)), { replaces: true }));
  lost.add(bytesOf(rows.slice(0, 10)));
  lost.end();
  await assert.rejects(
    lost.done,
    /^CommandRefusal: This import .* was taken for one whose process had ended/,
  );
  await assertWhole(items, rows.slice(10));
  assertClean(directory, 10);
});

test('a load that fails leaves an empty store, which can be loaded again', async (t) => {
  const directory = await temporaryFolder(t);
  const items = await openIn(t, directory);
  const rows = makeItems(200);
  const fill = startFill(items);
  fill.add(bytesOf(rows));
  await fill.asks();
  await assertWhole(items, []);
  fill.fail(new Error('broken'));
  await assert.rejects(fill.done, /broken/);
  await assertWhole(items, []);
  assertClean(directory, 0);
  await fillWith(items, bytesOf(rows));
  await assertWhole(items, rows);
  assertClean(directory, 200);
});

test('rows that come in order of their ids at first and then not, some of them twice, are all in order in the end', async (t) => {
  const directory = await temporaryFolder(t);
  const items = await openIn(t, directory);
  // Five of them are more than a transaction takes.
  const filler = 'x'.repeat(2 * 1024 * 1024);
  const rows = Array.from({ length: 15 }, (_, n) => makeItem(`id ${n + 10}`, 'b', new Int32(n), filler));
  const fill = startFill(items, { onConflict: 'skip' });
  fill.add(bytesOf(rows.slice(5, 10)));
  fill.add(bytesOf(rows.slice(10)));
  fill.add(bytesOf([...rows.slice(0, 5), ...rows.slice(9, 11)]));
  fill.end();
  await fill.done;
  assert.deepEqual(fill.result, { written: 15, skipped: 2 });
  await assertWhole(items, rows);
  assertClean(directory, 15);
});
