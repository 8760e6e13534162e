/**
 * What the embedded store acknowledges is on disk. A killed process cannot show that, because the page cache outlives it: here
 * the flush is held, and the system calls are read.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { BSON } from '../src/store/bson.ts';
import { LmdbChanges } from '../src/store/lmdb/changes.ts';
import { Commits } from '../src/store/lmdb/commits.ts';
import { ChangeLog } from '../src/store/lmdb/feed/log.ts';
import { openFile, tablesOf } from '../src/store/lmdb/file.ts';
import { LmdbWriter } from '../src/store/lmdb/write.ts';
import { childProgram } from './support/child-program.ts';
import { flushFaults } from './support/flushes.ts';
import { testDirectory } from './support/lmdb.ts';
import { program } from './support/programs.ts';

test('a write is acknowledged only after its flush', async (t) => {
  const file = openFile(join(await testDirectory(t), 'items.mdb'));
  t.after(() => file.close());
  const flushes: (() => void)[] = [];
  const held = {
    childTransaction: async <T>(action: () => T): Promise<T> => {
      const result = await file.childTransaction(action);
      await new Promise<void>((resolve) => flushes.push(resolve));
      return result;
    },
  };
  const committed: string[] = [];
  const commits = new Commits(held, {
    check: () => undefined,
    faultOf: (error) => Promise.resolve(error),
    onLost: (failure) => assert.fail(failure),
    onCommitted: () => committed.push('told'),
  });
  const tables = tablesOf(file);
  const gate = { isUnderWay: false, untilFree: () => Promise.resolve() };
  const writer = new LmdbWriter(tables, commits, gate, new ChangeLog(tables, { ttlMs: 1000, now: () => 0 }));
  const users = new LmdbChanges(tables.users, commits);
  const row = BSON.serialize({ _id: 'a', category: 'b', price: 1 });
  const writes: (readonly [string, () => Promise<unknown>])[] = [
    ['a transaction', () => commits.run(() => undefined)],
    ['an insert', () => writer.insert([row], 'fail')],
    ['a change of a user', () => users.change('ada', () => row)],
    ['a removal of a user', () => users.change('ada', () => null)],
  ];
  for (const [name, write] of writes) {
    let isAnswered = false;
    const answer = write().then(() => (isAnswered = true));
    while (flushes.length === 0) await turn();
    for (let turns = 0; turns < 10; turns++) await turn(); // an answer that does not wait would come by now
    assert.equal(isAnswered, false, name);
    assert.equal(committed.length, 0, `${name}: readers are not told of it either`);
    flushes.splice(0).forEach((release) => {
      release();
    });
    await answer;
    assert.equal(committed.splice(0).length, 1, name);
  }
});

test('the system has flushed every page and its meta page when a write is acknowledged', async (t) => {
  const strace = program(t, ['strace'], ['-V']);
  if (strace === null) return;
  const directory = await testDirectory(t);
  const trace = join(directory, 'trace');
  const calls = 'trace=openat,pwrite64,pwritev,write,writev,fsync,fdatasync,msync';
  const said = execFileSync(
    strace,
    [
      '-f',
      '-y',
      '--seccomp-bpf',
      '-e',
      calls,
      '-o',
      trace,
      process.execPath,
      ...childProgram('flush-writer.ts'),
      directory,
    ],
    { encoding: 'utf8' },
  );
  const acknowledged = said.trim().split('\n');
  assert.ok(acknowledged.length >= 7, said);
  const { faults, answers } = flushFaults(await readFile(trace, 'utf8'), join(directory, 'items.mdb'));
  assert.deepEqual(faults, []);
  assert.equal(answers, acknowledged.length);
});
