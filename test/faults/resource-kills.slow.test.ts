import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError } from '../../src/errors.ts';
import { BSON } from '../../src/store/bson.ts';
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
  const tables = connection.all(
    "select name from sqlite_schema where type = 'table' and name glob 's[0-9]*'",
  );
  const counts = tables.map(({ name }) =>
    Number(connection.get(`select count(*) n from ${name as string}`)?.n),
  );
  close();
  return counts.filter((count) => count > 0);
}

/** False for the same error: what is looked for has not happened yet. */
function isLoading(error: unknown): false {
  isNotReady(error);
  return false;
}

/** Fails for any other error. */
function isNotReady(error: unknown): true {
  assert.ok(error instanceof AppError && error.code === 'not-ready', String(error));
  return true;
}

test('a removal that is killed has removed all rows or none, and the next process frees their space', async (t) => {
  const { directory, store: beside, rows: orders } = await filled(t);
  const file = join(directory, 'new.ndjson');
  await writeFile(file, '{"_id":"new"}\n');
  let isOver = false;
  await sluice(['import', file, '--into', 'orders', '--drop', '--yes'], { DATA_DIR: directory }, (child) => {
    child.once('exit', () => (isOver = true));
    const hasBegun = () => orders.count(BY_ID, 'exact', NEVER).then(({ rows }) => rows < ROWS, isNotReady);
    void until(async () => isOver || (await hasBegun())).then(() => child.kill('SIGKILL'));
  });
  let left = -1;
  await until(() =>
    orders.count(BY_ID, 'exact', NEVER).then(({ rows }) => {
      left = rows;
      return true;
    }, isLoading),
  );
  assert.ok(left <= 1, `${left} rows`);
  await beside.close();
  const next = await openFor(t, directory);
  const again = await next.make({ ...ORDERS, indexes: [] }, () => undefined);
  assert.equal((await readRows(again, BY_ID, {}, { rows: 10, bytes: PLENTY })).rows.length, left);
  await again.clear(NEVER); // ends when no space is left to be freed
  assert.deepEqual(rowsIn(directory), []);
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
  const own = await store.make({ ...ORDERS, indexes: [] }, () => undefined);
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
  assert.deepEqual(
    (await next.declared()).map(({ indexes }) => indexes),
    [[['total']]],
  );
});
