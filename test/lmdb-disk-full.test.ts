import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { AppError } from '../src/errors.ts';
import { Double, Int32 } from '../src/store/bson.ts';
import { openLmdb } from '../src/store/lmdb.ts';
import { Slots } from '../src/store/slots.ts';
import { expectedItems, makeItem } from './support/items.ts';
import type { Item } from './support/items.ts';
import { openRaw } from './support/lmdb.ts';
import { PLENTY, assertChain } from './support/reading.ts';

const SPARE = 300_000;

test('on a full disk writes are refused with a code, acknowledged rows stay, also after a restart, and it goes on with space', async (t) => {
  const directory = await smallDisk(t, 3);
  if (!directory) return;
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', note);
  t.after(() => process.off('unhandledRejection', note));

  await writeFile(join(directory, 'spare'), Buffer.alloc(SPARE));
  const slots = new Slots();
  const full = await openLmdb({ directory, slots });
  const there: Item[] = [];
  let refused = 0;
  // Sizes vary, so that the disk is full at another step of a transaction each time.
  for (let call = 0; refused < 20; call++) {
    const rows = Array.from({ length: 1 + ((call * 13) % 60) }, (_, n) =>
      makeItem(new Int32(call * 100 + n), 'b', new Double((n * 31) % 17), 'x'.repeat((call * 97) % 900)),
    );
    try {
      await full.items.insert(
        rows.map(({ bytes }) => bytes),
        'fail',
      );
      there.push(...rows);
    } catch (error) {
      assert.ok(isFull(error), String(error));
      refused++;
    }
  }
  t.diagnostic(`${there.length} rows acknowledged`);
  assert.ok(there.length > 100);
  await assertWhole(full.items, there);
  await full.close();

  const store = await openLmdb({ directory, slots });
  t.after(() => store.close());
  await assertWhole(store.items, there);
  const { bytes } = makeItem('too much', 'b', new Int32(1), 'x'.repeat(1e6));
  await assert.rejects(store.items.insert([bytes], 'fail'), isFull);

  await rm(join(directory, 'spare'));
  const late = [makeItem('late', 'b', new Int32(3)), makeItem('later', 'b', new Int32(1))];
  const result = await store.items.insert(
    late.map(({ bytes }) => bytes),
    'fail',
  );
  assert.equal(result.written, 2);
  await assertWhole(store.items, [...there, ...late]);
  const file = openRaw(directory);
  t.after(() => file.close());
  assert.deepEqual([file.count(), file.faults()], [there.length + 2, []]);
  assert.deepEqual(unhandled, []);
  assert.equal(slots.taken, 0);
});

test('a new store on a full disk is refused with an error', async (t) => {
  const directory = await smallDisk(t, 1);
  if (!directory) return;
  await assert.rejects(async () => {
    await writeFile(join(directory, 'spare'), Buffer.alloc(2 * 1024 * 1024));
  }, /ENOSPC/);
  await assert.rejects(
    openLmdb({ directory, slots: new Slots() }),
    /DATA_DIR must be a directory that this process can write to: ENOSPC/,
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

/** A disk of this many megabytes; null, and the test skipped, where this process may not mount one. */
async function smallDisk(t: TestContext, megabytes: number): Promise<string | null> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-small-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', directory], { stdio: 'pipe' });
  } catch (error) {
    t.skip(
      `a small disk needs the right to mount a tmpfs: ${error instanceof Error ? error.message.trim() : ''}`,
    );
    await rm(directory, { recursive: true });
    return null;
  }
  t.after(async () => {
    execFileSync('umount', ['--lazy', directory]); // the store may still be open
    await rm(directory, { recursive: true });
  });
  return directory;
}
