import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { insertDocuments } from '../../support/store/items.ts';
import { openFor } from '../../support/store/sqlite/sqlite.ts';
import { temporaryFolder } from '../../support/directory.ts';

/** Behind so much of the log a checkpoint would wait for readers. */
const LOG_BYTES = 64 * 1024 * 1024;
const TEXT = 'x'.repeat(64 * 1024);
const WRITES = 20;
/** A write waited two seconds and more for the reader. Milliseconds. */
const MOST_MS = 1_000;

/** A process that reads the file in one transaction, until the test ends. */
async function startReader(t: TestContext, path: string): Promise<void> {
  const program = `
const { DatabaseSync } = require('@photostructure/sqlite');
const db = new DatabaseSync(process.argv[1]);
db.exec('begin');
db.prepare('select count(*) from sqlite_schema').all();
process.stdout.write('reading');
setInterval(() => db, 1000);`;
  const child = spawn(process.execPath, ['-e', program, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
}

test('writes of two stores do not wait behind a reader in another process, however long the log is', async (t) => {
  const directory = await temporaryFolder(t);
  const stores = [await openFor(t, directory), await openFor(t, directory)];
  const path = join(directory, 'sluice.db');
  let next = 0;
  const write = async (count: number): Promise<number> => {
    const begin = performance.now();
    const [store] = stores.slice(next % 2);
    assert.ok(store);
    const rows = Array.from({ length: count }, () => ({ _id: next++, category: TEXT, price: 1 }));
    await insertDocuments(store.items, rows);
    return performance.now() - begin;
  };
  await write(1);
  await startReader(t, path);
  while (statSync(`${path}-wal`).size < LOG_BYTES * 1.1) await write(51);
  const times: number[] = [];
  for (let n = 0; n < WRITES; n++) times.push(await write(1));
  const sorted = times.toSorted((a, b) => a - b);
  t.diagnostic(
    `a write took ${sorted[WRITES / 2]?.toFixed(1)} ms, the longest ${sorted.at(-1)?.toFixed(1)} ms`,
  );
  // One of them may come while the disk or another store is busy.
  assert.ok(
    (sorted.at(-2) ?? Infinity) < MOST_MS,
    `writes took ${times.map((ms) => ms.toFixed(0)).join(', ')} ms`,
  );
});
