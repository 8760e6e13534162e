import assert from 'node:assert/strict';
import { rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError } from '../../src/errors.ts';
import { ITEM_COLLECTION } from '../../src/resources/item-collection.ts';
import { Double, Int32 } from '../../src/store/bson.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { Slots } from '../../src/store/slots.ts';
import { expectedItems, makeItem, insertItems } from '../support/store/items.ts';
import type { Item } from '../support/store/items.ts';
import { smallDisk } from '../support/faults/small-disk.ts';
import { openDirectory, openRaw } from '../support/store/sqlite/sqlite.ts';
import { PLENTY, assertChain } from '../support/store/reading.ts';

const MEBIBYTE = 1024 * 1024;
/** Above the space that a writer leaves free. */
const ROOM = 6 * MEBIBYTE;

/** Leaves this number of bytes of the disk free. */
async function leaveFree(directory: string, bytes: number): Promise<void> {
  const path = join(directory, 'fill');
  await rm(path, { force: true });
  const { bavail, bsize } = await statfs(directory);
  await writeFile(path, Buffer.alloc(Math.max(0, bavail * bsize - bytes)));
}

test('on a disk that fills and empties writes are refused with a code, acknowledged rows stay, also after a restart', async (t) => {
  const directory = await smallDisk(t, 24 * MEBIBYTE);
  if (!directory) return;
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', note);
  t.after(() => process.off('unhandledRejection', note));

  const slots = new Slots();
  const full = await openSqlite({ items: ITEM_COLLECTION, directory, slots });
  const there: Item[] = [];
  let call = 0;
  // Sizes vary, so that the disk is full at another step of a transaction each time.
  const insert = async () => {
    call++;
    const rows = Array.from({ length: 1 + ((call * 13) % 60) }, (_, n) =>
      makeItem(new Int32(call * 100 + n), 'b', new Double((n * 31) % 17), 'x'.repeat((call * 97) % 900)),
    );
    await insertItems(full.items, rows);
    there.push(...rows);
  };
  for (let round = 0; round < 20; round++) {
    await leaveFree(directory, ROOM);
    await insert();
    await leaveFree(directory, round * 4_096); // sooner than the next look at the disk
    for (;;) {
      const failure: unknown = await insert().catch((error: unknown) => error);
      if (failure === undefined) continue;
      if (isFull(failure)) break;
      throw failure as Error;
    }
  }
  t.diagnostic(`${there.length} rows acknowledged`);
  assert.ok(there.length > 100);
  await assertWhole(full.items, there);
  await full.close();

  await leaveFree(directory, MEBIBYTE);
  const store = await openSqlite({ items: ITEM_COLLECTION, directory, slots });
  t.after(() => store.close());
  await assertWhole(store.items, there);
  const { bytes } = makeItem('too much', 'b', new Int32(1));
  await assert.rejects(store.items.insert([bytes], 'fail'), isFull);

  await leaveFree(directory, ROOM);
  const late = [makeItem('late', 'b', new Int32(3)), makeItem('later', 'b', new Int32(1))];
  const result = await insertItems(store.items, late);
  assert.equal(result.written, 2);
  await assertWhole(store.items, [...there, ...late]);
  const file = openRaw(directory);
  assert.deepEqual([file.count(), file.faults()], [there.length + 2, []]);
  file.close();
  assert.deepEqual(unhandled, []);
  assert.equal(slots.taken, 0);
});

test('a new store on a full disk is refused with an error', async (t) => {
  const directory = await smallDisk(t, MEBIBYTE);
  if (!directory) return;
  await assert.rejects(async () => {
    await writeFile(join(directory, 'spare'), Buffer.alloc(2 * MEBIBYTE));
  }, /ENOSPC/);
  await assert.rejects(
    openDirectory(directory),
    /cannot be opened as the embedded store: database or disk is full/,
  );
});

function isFull(error: unknown): boolean {
  return error instanceof AppError && error.code === 'insufficient-storage';
}

async function assertWhole(items: Parameters<typeof assertChain>[0], there: readonly Item[]): Promise<void> {
  for (const sort of ['_id', 'price']) {
    const plan = { sort, direction: 1 } as const;
    await assertChain(items, plan, {}, { rows: 1000, bytes: PLENTY }, expectedItems(there, plan));
  }
}
