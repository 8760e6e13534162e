import assert from 'node:assert/strict';
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { BSON } from '../../../src/store/values/bson.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { startProgram } from '../../support/process/child-program.ts';
import { until } from '../../support/store/changes.ts';
import { openDirectory, openRaw } from '../../support/store/sqlite/sqlite.ts';

const ORDERS = 'resource orders';
/** Two transactions take the keys out of them. */
const ROWS = 10_001;

/** A store that this process closed gives its log and its shared memory up when its statements are collected. Then again. */
async function copy(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true }).catch(async (error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await rm(to, { recursive: true, force: true });
    await cp(from, to, { recursive: true });
  });
}

test('an index whose removal is killed in any of its transactions is there, or gone with its space after the next start', async (t) => {
  const made = await temporaryFolder(t);
  const store = await openDirectory(made);
  const orders = await store.open({ name: 'orders', collection: 'orders', indexes: [['a'], ['b']] });
  const rows = Array.from({ length: ROWS }, (_, _id) => BSON.serialize({ _id, a: _id % 7, b: _id }));
  await orders.insert(rows, 'fail');
  await store.close();
  const outcomes: string[] = [];
  for (let transaction = 1; outcomes.at(-1) !== 'done'; transaction++)
    for (const where of process.env.LONG || transaction === 1 ? ['inside', 'after'] : ['after']) {
      const directory = join(await temporaryFolder(t), 'data');
      await copy(made, directory);
      const { child, ended } = startProgram(
        t,
        'store/sqlite/remove-index-child.ts',
        directory,
        transaction,
        where,
      );
      const [said, [, signal]] = await Promise.all([text(child.stdout), ended]);
      assert.ok(signal === 'SIGKILL' || said === 'done\n', `transaction ${transaction}`);
      const next = await openDirectory(directory);
      await until('the next process has ended what the other one began', () => {
        const { sets, close } = openRaw(directory);
        const { removing } = sets.get(ORDERS);
        close();
        return Promise.resolve(removing === undefined);
      });
      await next.close();
      const file = openRaw(directory);
      const { number, indexes } = file.sets.get(ORDERS);
      const isThere = indexes.length === 2;
      assert.deepEqual(file.faults(ORDERS), []);
      const ofTable = `select count(*) n from sqlite_schema where type = 'index' and tbl_name = 's${number}'`;
      const at = `${transaction} ${where}`;
      assert.equal(
        file.connection.get(ofTable)?.n,
        1 + indexes.length,
        `${at}: the key's and ${indexes.length}`,
      );
      const keys = file.connection.get(`select count(i1) n from s${number}`)?.n;
      assert.equal(keys, isThere ? ROWS : 0, `${at}: keys that are left`);
      file.close();
      outcomes.push(signal === null ? 'done' : isThere ? 'there' : 'gone');
    }
  assert.deepEqual(outcomes.slice(0, 2), ['there', 'gone'], 'the first transaction decides');
  assert.ok(outcomes.length >= 6, outcomes.join());
});
