import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { ITEM_COLLECTION } from '../../src/resources/item-collection.ts';
import { BSON } from '../../src/store/bson.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { Slots } from '../../src/store/slots.ts';
import { childProgram } from '../support/process/child-program.ts';
import { openRaw, testDirectory } from '../support/store/sqlite/sqlite.ts';

const KILLS = process.env.LONG ? 200 : 5;
/** A new directory is used after this many kills, because all of its rows are read after each kill. */
const KILLS_A_DIRECTORY = 10;

test(`after ${KILLS} kill -9 every acknowledged row is there, and the indexes are those of the rows`, async (t) => {
  let directory = await testDirectory(t);
  let acknowledged = new Set<number>();
  let [inAll, longest] = [0, 0];
  for (let kill = 1; kill <= KILLS; kill++) {
    if (kill % KILLS_A_DIRECTORY === 0) [directory, acknowledged] = [await testDirectory(t), new Set()];
    const before = acknowledged.size;
    await writeUntilKilled(directory, kill, acknowledged);
    inAll += acknowledged.size - before;
    assert.ok(acknowledged.size > before, 'something was written');

    const started = performance.now();
    const store = await openSqlite({ items: ITEM_COLLECTION, directory, slots: new Slots() });
    await store.ping();
    const took = performance.now() - started;
    await store.close();
    longest = Math.max(longest, took);
    assert.ok(took < 2000, `opened after ${took} ms`);

    const file = openRaw(directory);
    const ids = new Set(file.rows().map((row) => BSON.deserialize(row)._id as number));
    assert.deepEqual(
      [...acknowledged].filter((id) => !ids.has(id)),
      [],
      'acknowledged, but lost',
    );
    assert.deepEqual(file.faults(), []);
    file.close();
  }
  t.diagnostic(`${inAll} rows acknowledged; open again within ${longest.toFixed(0)} ms`);
});

/** Kills the writer a moment after an acknowledgement. With three concurrent inserts one is always running. */
async function writeUntilKilled(directory: string, seed: number, acknowledged: Set<number>): Promise<void> {
  const child = spawn(
    process.execPath,
    [...childProgram('store/sqlite/sqlite-writer.ts'), directory, String(seed), '1000'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const exit = once(child, 'exit');
  const killAt = 1 + Math.floor(Math.random() * 40);
  let lines = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    for (const id of line.split(' ')) acknowledged.add(Number(id));
    if (++lines === killAt) child.kill('SIGKILL');
  }
  assert.deepEqual(await exit, [null, 'SIGKILL']);
}
