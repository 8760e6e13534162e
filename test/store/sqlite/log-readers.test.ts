import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { FILE } from '../../../src/store/sqlite/file.ts';
import { readersOf } from '../../../src/store/sqlite/log-readers.ts';
import { openFor } from '../../support/store/sqlite/sqlite.ts';
import { temporaryFolder } from '../../support/directory.ts';

/** Reads a state of a file, says so, and keeps it until it is killed. */
const READER = `
  const { DatabaseSync } = require('@photostructure/sqlite');
  const file = new DatabaseSync(process.argv[1]);
  file.exec('begin; select count(*) from sqlite_schema');
  console.log('reads');
  setInterval(() => file.isOpen, 1000);
`;

test('the process that keeps the write-ahead log from beginning anew is named', async (t) => {
  if (process.platform !== 'linux') {
    t.skip('only Linux lists the locks of files');
    return;
  }
  const directory = await temporaryFolder(t);
  await openFor(t, directory);
  const path = join(directory, FILE);
  assert.deepEqual(await readersOf(path), []);
  const reader = spawn(process.execPath, ['-e', READER, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => reader.kill());
  await once(reader.stdout, 'data');
  assert.deepEqual(await readersOf(path), [reader.pid]);
  reader.kill();
  await once(reader, 'exit');
  assert.deepEqual(await readersOf(path), []);
});
