import assert from 'node:assert/strict';
import { rm, stat, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError } from '../../src/base/errors.ts';
import { Double, Int32 } from '../../src/store/values/bson.ts';
import { FILE } from '../../src/store/sqlite/file/file.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { expectedItems, makeItem, insertItems } from '../support/store/items.ts';
import type { Item } from '../support/store/items.ts';
import { linesOf } from '../support/answers.ts';
import { temporaryFolder } from '../support/directory.ts';
import { sluice } from '../support/process/commands.ts';
import { serverOn } from '../support/process/server.ts';
import { smallDisk } from '../support/faults/small-disk.ts';
import { openDirectory, openRaw } from '../support/store/sqlite/sqlite.ts';
import { PLENTY, assertChain } from '../support/store/reading.ts';

const MEBIBYTE = 1024 * 1024;
/** Above the space that a writer leaves free. */
const ROOM = 6 * MEBIBYTE;

/**
 * Leaves this number of bytes of the disk free. A store that this process closed gives its files up when its statements are
 * collected: SQLite moves its log then. So space may go while the file is written, and the next look counts anew.
 */
async function leaveFree(directory: string, bytes: number): Promise<void> {
  const path = join(directory, 'fill');
  for (;;) {
    await rm(path, { force: true });
    const room = (await freeIn(directory)) - bytes;
    const failure: unknown = await writeFile(path, Buffer.alloc(Math.max(0, room))).catch(
      (error: unknown) => error,
    );
    if (failure === undefined) return;
    if ((failure as NodeJS.ErrnoException).code !== 'ENOSPC') throw failure as Error;
  }
}

test('on a disk that fills and empties writes are refused with a code, acknowledged rows stay, also after a restart', async (t) => {
  const directory = await smallDisk(t, 24 * MEBIBYTE);
  if (!directory) return;
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', note);
  t.after(() => process.off('unhandledRejection', note));

  const slots = new Slots();
  const full = await openDirectory(directory, { slots });
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
  const store = await openDirectory(directory, { slots });
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

const ROWS_OF_IMPORT = 100_000;
/** The disk of an import that is killed: even a late kill leaves the space that a start needs. */
const WIDE = 64 * MEBIBYTE;

for (const isKilled of [false, true])
  test(`an import that fills the disk${isKilled ? ' and is killed' : ''} gives the space back, and a server serves and writes what is left`, async (t) => {
    const directory = await smallDisk(t, isKilled ? WIDE : 24 * MEBIBYTE);
    if (!directory) return;
    const there = Array.from({ length: 2_000 }, (_, n) => makeItem(new Int32(n), 'b', new Double(n % 17)));
    const store = await openDirectory(directory);
    await insertItems(store.items, there);
    await store.close();
    const freeBefore = await freeIn(directory);
    const lines = function* () {
      for (let n = 0; n < ROWS_OF_IMPORT; n++)
        yield `{"_id":"${(n * 7_919) % ROWS_OF_IMPORT} of the import","category":"c","price":${n % 97},"x":"${'x'.repeat(600)}"}\n`;
    };
    const file = join(await temporaryFolder(t), 'rows.ndjson');
    await writeFile(file, lines());
    let isOver = false;
    const { code, said } = await sluice(
      ['import', file, '--into', 'items', '--drop', '--yes'],
      { DATA_DIR: directory },
      (child) => {
        child.once('exit', () => (isOver = true));
        void (async () => {
          while (isKilled && !isOver && (await freeIn(directory)) > WIDE - 2 * ROOM) await nextTurn();
          if (isKilled) child.kill('SIGKILL');
        })();
      },
    );
    if (isKilled) assert.equal(code, null);
    else {
      assert.equal(code, 1, said);
      assert.match(said, /The disk of the store is full: free at least \d+ MiB more on it/);
      assert.match(said, / 0 written/);
      assert.ok(
        (await freeIn(directory)) > freeBefore - MEBIBYTE,
        `${await freeIn(directory)} of ${freeBefore}`,
      );
    }
    await leaveFree(directory, 0);
    // By another process: a connection that this one closed would move its log when it is collected.
    const { said: saidWhenFull } = await sluice(['index', 'items', 'price'], { DATA_DIR: directory });
    t.diagnostic(saidWhenFull);
    assert.match(saidWhenFull, /free at least [45] MiB more on it|the index exists/);
    await rm(join(directory, 'fill'), { force: true });
    await leaveFree(directory, Math.min(4 * MEBIBYTE + 65_536, await freeIn(directory)));
    const server = await serverOn(t, { DATA_DIR: directory });
    assert.equal((await linesOf(server.get('/items/stream'))).length, there.length);
    while ((await filesIn(directory)) > 2 * MEBIBYTE) await nextTurn(); // a start gives back in the background
    await rm(join(directory, 'fill'), { force: true });
    assert.ok((await freeIn(directory)) > freeBefore - 2 * MEBIBYTE);
    assert.equal(await writtenAtLast(server.store.items, makeItem('new', 'b', new Int32(1))), 1);
    const raw = openRaw(directory);
    assert.deepEqual([raw.count(), raw.faults(), raw.sets.discarded()], [there.length + 1, [], []]);
    raw.close();
  });

/** Writes a row once the store has looked at the disk again, which it does from time to time. */
async function writtenAtLast(items: Parameters<typeof insertItems>[0], item: Item): Promise<number> {
  for (;;) {
    const result: unknown = await insertItems(items, [item]).catch((error: unknown) => error);
    if (!isFull(result)) return (result as Awaited<ReturnType<typeof insertItems>>).written;
    await nextTurn();
  }
}

async function freeIn(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** The bytes of the store's files. */
async function filesIn(directory: string): Promise<number> {
  const sizes = ['', '-wal'].map((end) =>
    stat(join(directory, `${FILE}${end}`)).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size);
}
