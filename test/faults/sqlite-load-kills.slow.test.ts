import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { FILE } from '../../src/store/sqlite/file/file.ts';
import { startProgram } from '../support/process/child-program.ts';
import { ITEMS, openDirectory, openRaw } from '../support/store/sqlite/sqlite.ts';
import { insertItems, makeItems } from '../support/store/items.ts';
import { NEVER, PLENTY, readRows } from '../support/store/reading.ts';
import { temporaryFolder } from '../support/directory.ts';

/** In two transactions of rows. */
const COUNT = 13_000;
const BY_ID = { sort: '_id', direction: 1 } as const;
/**
 * It begins, writes rows twice, finds those that come twice (2), sorts all of them (2), makes four indexes, and ends. A slow
 * one renews its mark, too.
 */
const LEAST_TRANSACTIONS = 12;

/** Loads in a process that is killed in this transaction. Resolves with whether it was. */
async function isKilledIn(
  t: TestContext,
  directory: string,
  transaction: number,
  where: string,
): Promise<boolean> {
  const { child, ended } = startProgram(t, 'import/load-child.ts', directory, COUNT, transaction, where);
  const [said, [code, signal]] = await Promise.all([text(child.stdout), ended]);
  if (signal === 'SIGKILL') return true;
  assert.deepEqual([said, code], ['done\n', 0]);
  return false;
}

for (const old of [0, 5])
  test(`a load in place of ${old} rows that is killed in any of its transactions leaves these, and the next one starts anew`, async (t) => {
    const directory = await temporaryFolder(t);
    const store = await openDirectory(directory);
    if (old > 0) await insertItems(store.items, makeItems(old));
    await store.close();
    let kills = 0;
    let isWhole = false;
    for (let transaction = 1; !isWhole; transaction++) {
      // A kill inside the last transaction leaves the old rows, and the next number lets the load end.
      for (const where of process.env.LONG
        ? ['after', 'inside']
        : [transaction % 2 === 0 ? 'inside' : 'after']) {
        if (isWhole) break;
        if (await isKilledIn(t, directory, transaction, where)) kills++;
        else isWhole = true;
        const mayBeWhole = isWhole || transaction >= LEAST_TRANSACTIONS;
        if (kills % 3 === 0 || mayBeWhole) isWhole = await checkIsWhole(directory, old); // else the next load finds what this left
      }
    }
    assert.ok(kills >= LEAST_TRANSACTIONS - 1, `${kills} kills`);
    const left = (await readdir(directory)).filter(
      (name) => !name.startsWith(FILE) && name !== 'sluice.mark' && name !== 'exports',
    );
    assert.deepEqual(left, [], 'no temporary file is left');
  });

/** False when the store has its old rows. Fails when it has neither all of these nor all new ones, or tables of a load. */
async function checkIsWhole(directory: string, old: number): Promise<boolean> {
  const store = await openDirectory(directory);
  const { rows } = await readRows(store.items, BY_ID, {}, { rows: 2 * COUNT, bytes: PLENTY });
  const { rows: counted } = await store.items.count(BY_ID, 'exact', NEVER);
  await store.close(); // when what was left is removed
  const file = openRaw(directory);
  const found = [rows.length, counted, file.rows().length, file.count()];
  const isWhole = counted > old;
  assert.deepEqual(found, new Array(found.length).fill(isWhole ? COUNT : old));
  assert.deepEqual([file.faults(), file.sets.get(ITEMS).imports ?? [], file.sets.discarded()], [[], [], []]);
  file.close();
  return isWhole;
}
