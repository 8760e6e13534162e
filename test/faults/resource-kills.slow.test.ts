import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BSON } from '../../src/store/values/bson.ts';
import { sluice } from '../support/process/commands.ts';
import { openFor, openRaw } from '../support/store/sqlite/sqlite.ts';
import { temporaryFolder } from '../support/directory.ts';
import { NEVER, PLENTY, readRows } from '../support/store/reading.ts';

const ROWS = 30_000;
const ORDERS = { name: 'orders', collection: 'orders', indexes: [['total']] };
const BY_ID = { sort: '_id', direction: 1 } as const;

/** A store with a resource of many rows, and a collection of it that stays open beside the command. */
async function filled(t: TestContext) {
  const directory = join(await temporaryFolder(t), 'data');
  const store = await openFor(t, directory);
  const rows = await store.open(ORDERS);
  const documents = Array.from({ length: ROWS }, (_, _id) =>
    BSON.serialize({ _id, total: -_id, other: _id % 7 }),
  );
  assert.equal((await rows.insert(documents, 'fail')).written, ROWS);
  return { directory, store, rows };
}

/** Resolves when `look` is true. */
async function until(look: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 30_000;
  while (!(await look())) {
    if (performance.now() > end) throw new Error('it did not happen in 30 s');
    await nextTurn();
  }
}

/** The numbers of rows that tables of the file have, those of removed rows included. Tables without rows are left out. */
function rowsIn(directory: string): number[] {
  const { connection, close } = openRaw(directory);
  const counts = connection.look(() =>
    connection
      .all("select name from sqlite_schema where type = 'table' and name glob 's[0-9]*'")
      .map(({ name }) => Number(connection.get(`select count(*) n from ${name as string}`)?.n)),
  );
  close();
  return counts.filter((count) => count > 0);
}

/** Whether an import is under way in the resource, or was killed in it. */
function isImporting(directory: string): boolean {
  const { sets, close } = openRaw(directory);
  const { imports = [] } = sets.get('resource orders');
  close();
  return imports.length > 0;
}

for (const moment of ['it has begun', 'it has ended'])
  test(`a replacement that is killed when ${moment} has replaced all rows or none, and the next process frees their space`, async (t) => {
    const { directory, store: beside, rows: orders } = await filled(t);
    const file = join(directory, 'new.ndjson');
    const lines = Array.from({ length: ROWS / 2 }, (_, n) => `{"_id":"new ${n}","total":${n % 100}}\n`);
    await writeFile(file, lines.join(''));
    const arguments_ = ['import', file, '--into', 'orders', '--drop', '--yes'];
    let isOver = false;
    const seen = new Set<number>();
    await sluice(arguments_, { DATA_DIR: directory }, (child) => {
      child.once('exit', () => (isOver = true));
      void (async () => {
        let hasBegun = false;
        for (let isTime = false; !isTime && !isOver;) {
          const { rows } = await orders.count(BY_ID, 'exact', NEVER);
          seen.add(rows);
          hasBegun ||= isImporting(directory);
          isTime = moment === 'it has begun' ? hasBegun : hasBegun && rows !== ROWS;
          await nextTurn();
        }
        child.kill('SIGKILL');
      })();
    });
    const left = (await orders.count(BY_ID, 'exact', NEVER)).rows;
    for (const rows of seen.add(left)) assert.ok([ROWS, ROWS / 2].includes(rows), `${rows} rows`);
    assert.equal(left, moment === 'it has begun' ? ROWS : ROWS / 2);
    await beside.close();
    const next = await openFor(t, directory);
    const again = await next.open(ORDERS);
    assert.equal((await readRows(again, BY_ID, {}, { rows: 2 * ROWS, bytes: PLENTY })).rows.length, left);
    await until(() => rowsIn(directory).length === 1); // in the background
    assert.deepEqual(rowsIn(directory), [left]);
    await until(() => !isImporting(directory));
  });

test('an index whose command was killed is built to its end by a process beside it', async (t) => {
  const { directory, store, rows } = await filled(t);
  const stateOf = async () =>
    (await rows.describe(NEVER)).indexes.find(({ name }) => name === 'other_1_total_1__id_1');
  let isOver = false;
  await sluice(['index', 'orders', 'other,total'], { DATA_DIR: directory }, (child) => {
    child.once('exit', () => (isOver = true));
    void until(async () => isOver || (await stateOf()) !== undefined).then(() => child.kill('SIGKILL'));
  });
  await until(async () => {
    const state = await stateOf();
    return state !== undefined && state.refused === undefined;
  });
  const index = await stateOf();
  assert.ok(index);
  const plan = { sort: 'total', direction: 1, equals: [{ path: 'other', value: 3 }], index } as const;
  const expected = Array.from({ length: ROWS }, (_, n) => n).filter((n) => n % 7 === 3).length;
  assert.equal((await rows.count(plan, 'exact', NEVER)).rows, expected);
  await store.close();
});

test('an index that arrays made unusable is built anew by the same command, once they are gone', async (t) => {
  const directory = join(await temporaryFolder(t), 'data');
  const store = await openFor(t, directory);
  const own = await store.open({ ...ORDERS, indexes: [] }, 'make');
  const write = (total: unknown) => own.insert([BSON.serialize({ _id: 1, total })], 'replace');
  await write([1, 2]);
  const refused = await own.addIndex(['total'], () => undefined, NEVER);
  assert.match(refused.index.refused ?? '', /array at total/);
  await write(2);
  const { index, isNew } = await own.addIndex(['total'], () => undefined, NEVER);
  assert.deepEqual([index.refused, isNew], [undefined, true]);
  assert.equal(
    (await readRows(own, { sort: 'total', direction: 1, index }, {}, { rows: 9, bytes: PLENTY })).rows.length,
    1,
  );
  await store.close();
  const next = await openFor(t, directory);
  const { collections } = await next.list();
  assert.deepEqual(collections.find(({ collection }) => collection === 'orders')?.declaration?.indexes, [
    ['total'],
  ]);
});
