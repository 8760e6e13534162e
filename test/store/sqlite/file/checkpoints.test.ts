import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Checkpoints } from '../../../../src/store/sqlite/file/checkpoints.ts';
import type { StoreFile } from '../../../../src/store/sqlite/file/file.ts';
import type { Maintenance } from '../../../../src/store/sqlite/file/maintenance.ts';

test('no checkpoint moves the rows of a killed import into the file before they are removed', async () => {
  const made: string[] = [];
  const file = { pagesInLog: () => 5_000, logBytes: () => 0 } as unknown as StoreFile;
  const maintenance = {
    run: (sql: string) => Promise.resolve(void made.push(sql)),
  } as unknown as Maintenance;
  const onWarning = (message: string): never => assert.fail(message);
  const checkpoints = new Checkpoints({ file, checkpointPages: 1_000, onWarning }, maintenance);
  let removed: () => void = () => undefined;
  checkpoints.hold(new Promise((resolve) => (removed = resolve)));
  await checkpoints.make();
  assert.deepEqual(made, []);
  removed();
  await nextTurn();
  await checkpoints.make();
  assert.equal(made.length, 1);
  assert.match(made.join('\n'), /wal_checkpoint\(passive\)/);
});
