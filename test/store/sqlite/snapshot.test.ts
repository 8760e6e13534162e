import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Snapshot } from '../../../src/store/collection.ts';
import { Double } from '../../../src/store/values/bson.ts';
import type { OwnedCollection } from '../../../src/store/store.ts';
import { BY_ID, feedOf, isProblem, keysSince, until } from '../../support/store/changes.ts';
import { makeItem, makeItems } from '../../support/store/items.ts';
import { NEVER, PLENTY, takeRows } from '../../support/store/reading.ts';
import { ITEMS, openFor, openRaw, testSqlite } from '../../support/store/sqlite/sqlite.ts';

const LONG_MS = 3_600_000;

async function take({ snapshot }: OwnedCollection): Promise<Snapshot> {
  assert.ok(snapshot);
  return snapshot(NEVER);
}

async function countIn({ rows }: Snapshot): Promise<number> {
  return takeRows(await rows.read(BY_ID, {}, { rows: 1_000, bytes: PLENTY }, NEVER)).length;
}

function insert(items: OwnedCollection, rows: readonly { readonly bytes: Uint8Array }[]) {
  return items.insert(
    rows.map(({ bytes }) => bytes),
    'replace',
  );
}

test('a snapshot ends when its time is over, when it is released, and with its store', async (t) => {
  const { store, directory } = await testSqlite(t, { snapshotMs: 200 });
  await insert(store.items, makeItems(9));
  const first = await take(store.items);
  await until('its time is over', () =>
    countIn(first).then(
      () => false,
      (error: unknown) => isProblem('snapshot-expired')(error),
    ),
  );
  const lasting = await openFor(t, directory, { snapshotMs: LONG_MS });
  const released = await take(lasting.items);
  const kept = await take(lasting.items);
  released.release();
  await assert.rejects(countIn(released), isProblem('snapshot-expired'));
  assert.equal(await countIn(kept), 9);
  await lasting.close();
  await assert.rejects(countIn(kept), isProblem('store-unavailable'));
  kept.release();
});

test('the log begins anew when a snapshot has ended', async (t) => {
  const { store, directory } = await testSqlite(t, { snapshotMs: LONG_MS });
  const bytes = () => statSync(join(directory, 'sluice.db-wal')).size;
  let written = 0;
  const write = async (): Promise<void> => {
    for (let n = 0; n < 20; n++) {
      const name = `${++written} ${'x'.repeat(9_000)}`;
      await insert(
        store.items,
        Array.from({ length: 50 }, (_, id) => makeItem(`i${id}`, 'b', new Double(1), name)),
      );
    }
  };
  await write();
  const usual = bytes();
  const snapshot = await take(store.items);
  for (let n = 0; n < 4; n++) await write();
  assert.ok(bytes() > 2 * usual, 'it keeps the log');
  snapshot.release();
  await write();
  const before = bytes();
  for (let n = 0; n < 4; n++) await write();
  assert.ok(bytes() < before + usual, `the log goes from ${before} to ${bytes()} bytes`);
});

test('other processes write, empty the collection and load rows beside a snapshot', async (t) => {
  const { store, directory } = await testSqlite(t, { snapshotMs: LONG_MS });
  const other = await openFor(t, directory);
  await insert(store.items, makeItems(9));
  const first = await take(store.items);
  await insert(other.items, [makeItem('another', 'b', new Double(1))]);
  const { keys } = await keysSince(feedOf(store.items), first.place);
  assert.equal(keys.length, 1);
  const second = await take(store.items);
  await other.items.clear(NEVER);
  await assert.rejects(keysSince(feedOf(store.items), second.place), isProblem('changes-expired'));
  const { identity } = await store.items.describe(NEVER);
  assert.notEqual(identity, second.identity);
  await insert(other.items, makeItems(3));
  const third = await take(store.items);
  assert.deepEqual([await countIn(first), await countIn(second), await countIn(third)], [9, 10, 3]);
  for (const snapshot of [first, second, third]) snapshot.release();
});

test('a damaged row, and one that is missing, are noticed in a snapshot', async (t) => {
  const { store, directory } = await testSqlite(t, { snapshotMs: LONG_MS });
  const rows = makeItems(9);
  await insert(store.items, rows);
  const raw = openRaw(directory);
  const table = `s${raw.sets.get(ITEMS).number}`;
  raw.connection.run(`delete from ${table} where n = (select max(n) from ${table})`);
  raw.close();
  const snapshot = await take(store.items);
  await assert.rejects(countIn(snapshot), isProblem('store-unfit'));
  snapshot.release();
});
