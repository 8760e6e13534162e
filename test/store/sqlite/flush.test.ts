/**
 * What the embedded store acknowledges is on disk. A killed process cannot show that, because the page cache outlives it: here
 * the sync is held, and the system calls are read.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { BSON } from '../../../src/store/values/bson.ts';
import { Slots } from '../../../src/store/turns/slots.ts';
import { SqliteCollection } from '../../../src/store/sqlite/collection.ts';
import { Core } from '../../../src/store/sqlite/core.ts';
import { FILE, openFile } from '../../../src/store/sqlite/file/file.ts';
import { childProgram } from '../../support/process/child-program.ts';
import { flushFaults } from '../../support/store/flushes.ts';
import { program } from '../../support/process/programs.ts';
import { temporaryFolder } from '../../support/directory.ts';

test('a write is acknowledged only after its sync', async (t) => {
  const directory = await temporaryFolder(t);
  const onWarning = (message: string) => assert.fail(message);
  const opened = await openFile(directory, onWarning);
  const syncs: (() => void)[] = [];
  let isHeld = false;
  const syncNow = opened.sync.bind(opened);
  const sync = () => (isHeld ? new Promise<void>((resolve) => syncs.push(resolve)) : syncNow());
  const slots = new Slots();
  const core = new Core({
    file: Object.assign(opened, { sync }),
    directory,
    slots,
    onWarning,
    checkpointPages: 1_000,
    snapshotMs: 60_000,
    ttlMs: 1_000,
    wallClock: Date.now,
    now: () => performance.now(),
  });
  const shape = { name: 'rows', label: 'rows', indexes: [], hasChanges: true };
  const set = await SqliteCollection.open(core, shape);
  isHeld = true;
  const row = BSON.serialize({ _id: 'ada', category: 'b', price: 1 });
  const writes: (readonly [string, () => Promise<unknown>])[] = [
    ['a transaction', () => core.writes.run(() => undefined)],
    ['an insert', () => set.insert([row], 'fail')],
    ['a change of a user', () => set.change('ada', () => row)],
    ['a removal of a user', () => set.change('ada', () => null)],
  ];
  for (const [name, write] of writes) {
    let isAnswered = false;
    const answer = write().then(() => (isAnswered = true));
    while (syncs.length === 0) await turn();
    for (let turns = 0; turns < 10; turns++) await turn(); // an answer that does not wait would come by now
    assert.equal(isAnswered, false, name);
    syncs.splice(0).forEach((release) => {
      release();
    });
    await answer;
  }
  await opened.close('stopped');
});

test('the system has flushed the write-ahead log when a write is acknowledged', async (t) => {
  const strace = program(t, ['strace'], ['-V']);
  if (strace === null) return;
  const directory = await temporaryFolder(t);
  const trace = join(directory, 'trace');
  const calls = 'trace=openat,pwrite64,pwritev,write,writev,fsync,fdatasync';
  const options = ['-f', '-y', '--seccomp-bpf', '-e', calls, '-o', trace];
  const said = execFileSync(
    strace,
    [...options, process.execPath, ...childProgram('store/flush-writer.ts'), directory],
    {
      encoding: 'utf8',
    },
  );
  const acknowledged = said.trim().split('\n');
  assert.ok(acknowledged.length >= 7, said);
  const { faults, answers } = flushFaults(await readFile(trace, 'utf8'), join(directory, `${FILE}-wal`));
  assert.deepEqual(faults, []);
  assert.equal(answers, acknowledged.length);
});
