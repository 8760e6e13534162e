/**
 * The write-ahead log behind a kill. A copy of an open directory is what a killed process leaves: the system has all that it
 * wrote. Acknowledged rows that the log has no more are never lost without a word.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { BSON } from '../../../../src/store/values/bson.ts';
import { FILE } from '../../../../src/store/sqlite/file/file.ts';
import { faultOfLog } from '../../../../src/store/sqlite/file/log-file.ts';
import { temporaryFolder } from '../../../support/directory.ts';
import { run, sluice } from '../../../support/process/commands.ts';
import { SEED } from '../../../support/seed.ts';
import { below, randomFrom, type Random } from '../../../support/store/random-collection.ts';
import { PLENTY, readRows } from '../../../support/store/reading.ts';
import { openDirectory, openFor, openRaw } from '../../../support/store/sqlite/sqlite.ts';

const BY_ID = { sort: '_id', direction: 1 } as const;
const FLIPS = process.env.LONG === '1' ? 3_000 : 25;
const WRITES = 30;
const REFUSED =
  /sluice\.mark says that the store was not stopped in order, and what was written last is lost/;

const row = (_id: number) => BSON.serialize({ _id, category: 'a', price: 1 });

/** By another process: this one would lose its locks on files that it opens and closes. */
async function killed(t: TestContext, directory: string): Promise<string> {
  const copy = join(await temporaryFolder(t), 'data');
  execFileSync('cp', ['-r', directory, copy]);
  return copy;
}

async function rowsIn(directory: string): Promise<number> {
  const store = await openDirectory(directory);
  try {
    return (await readRows(store.items, BY_ID, {}, { rows: 1_000, bytes: PLENTY })).rows.length;
  } finally {
    await store.close();
  }
}

interface Written {
  readonly directory: string;
  /** The size of its log before the last write. */
  readonly bytes: number;
}

/** A directory with a log of acknowledged rows, as a kill leaves it. */
async function written(t: TestContext): Promise<Written> {
  const directory = join(await temporaryFolder(t), 'data');
  const store = await openFor(t, directory);
  let bytes = 0;
  for (let id = 0; id < WRITES; id++) {
    ({ size: bytes } = await stat(join(directory, `${FILE}-wal`)));
    await store.items.insert([row(id)], 'fail');
  }
  return { directory: await killed(t, directory), bytes };
}

const DAMAGES: Record<string, (log: string, bytes: number, random: Random) => Promise<unknown>> = {
  'is missing': (log) => rm(log),
  'is empty': (log) => truncate(log, 0),
  'has a flipped bit': async (log, bytes, random) => {
    const all = await readFile(log);
    const at = below(random, bytes);
    all.writeUInt8(all.readUInt8(at) ^ (1 << below(random, 8)), at);
    await writeFile(log, all);
  },
  'has a page of zeros': async (log, bytes, random) => {
    const all = await readFile(log);
    const at = below(random, bytes - 4_096);
    await writeFile(log, all.fill(0, at, at + 4_096));
  },
};

for (const [name, damage] of Object.entries(DAMAGES))
  test(`a log that ${name} behind a kill is refused, with the way on`, async (t) => {
    const { directory, bytes } = await written(t);
    const random = randomFrom(SEED);
    for (let n = 0; n < (name.startsWith('has') ? FLIPS : 1); n++) {
      const copy = await killed(t, directory);
      await damage(join(copy, `${FILE}-wal`), bytes, random);
      await assert.rejects(openDirectory(copy), REFUSED);
      for (const command of [['check'], ['backup', join(copy, 'backup.db')]]) {
        if (n > 0) break;
        const { code, said } = await sluice(command, { DATA_DIR: copy });
        assert.equal(code, 1);
        assert.match(said, REFUSED);
      }
      await assert.rejects(openDirectory(copy), REFUSED, 'it stays so');
      await rm(join(copy, 'sluice.mark'));
      assert.ok((await rowsIn(copy)) <= WRITES, 'the operator goes on with the rest');
    }
    assert.equal(await rowsIn(directory), WRITES);
  });

/** What SQLite does itself with the log of a killed process. It has moved all of it into the file before. */
const MOVES: Record<string, (directory: string) => Promise<unknown>> = {
  'another program opens and closes the file': (directory) => {
    openRaw(directory).close();
    return Promise.resolve();
  },
  'a process empties the log and is killed': async (directory) => {
    const { connection, close } = openRaw(directory);
    connection.get('pragma wal_checkpoint(truncate)');
    execFileSync('cp', ['-r', directory, `${directory}.killed`]);
    close();
    await rm(directory, { recursive: true });
    await rename(`${directory}.killed`, directory);
  },
};

for (const [name, move] of Object.entries(MOVES))
  test(`a log that SQLite has moved into the file is not missed: ${name}`, async (t) => {
    const { directory } = await written(t);
    await move(directory);
    assert.equal((await stat(join(directory, `${FILE}-wal`)).catch(() => null))?.size ?? 0, 0, 'no log');
    assert.equal(await rowsIn(directory), WRITES);
  });

test('a log that is gone with its index is refused when the file has nothing of what was in it', async (t) => {
  const { directory } = await written(t);
  for (const end of ['-wal', '-shm']) await rm(join(directory, FILE + end));
  await assert.rejects(openDirectory(directory), REFUSED);
  await assert.rejects(openDirectory(directory), REFUSED, 'it stays so');
});

test('what a loss of power leaves is opened: the end of the log in any state', async (t) => {
  const { directory, bytes } = await written(t);
  const mark = JSON.parse(await readFile(join(directory, 'sluice.mark'), 'utf8')) as object;
  await writeFile(join(directory, 'sluice.mark'), JSON.stringify({ ...mark, boot: 'of another start' }));
  const log = await readFile(join(directory, `${FILE}-wal`));
  await writeFile(join(directory, `${FILE}-wal`), log.fill(0, bytes, bytes + 200));
  assert.equal(await rowsIn(directory), WRITES - 1);
});

test('a process that is killed at any step of a start, a write, a checkpoint or a stop leaves a store that opens with all rows', async (t) => {
  const directory = join(await temporaryFolder(t), 'data');
  const onWarning = (message: string) => assert.fail(message);
  let acknowledged = 0;
  let looked = 0;
  /** Looks at the directory again and again while this is done. */
  const lookingDuring = async <T>(work: Promise<T>): Promise<T> => {
    const state = { isDone: false };
    const done = work.finally(() => (state.isDone = true));
    for (let turns = 0; !state.isDone; turns++) {
      const before = acknowledged;
      if (turns % 3 === 0) {
        const copy = await killed(t, directory).catch(() => null);
        const rows = copy === null ? before : await rowsIn(copy);
        assert.ok(rows >= before, `${rows} of ${before} rows`);
        looked++;
      }
      await turn();
    }
    return done;
  };
  for (let round = 0; round < 4; round++) {
    const first = await lookingDuring(
      openDirectory(directory, { onWarning, transactionRows: round % 2 === 0 ? 2_000 : 7 }),
    );
    const second = round > 1 ? await lookingDuring(openDirectory(directory, { onWarning })) : null;
    for (let n = 0; n < 3; n++) {
      const rows = Array.from({ length: 60 }, (_, at) => row(acknowledged + at));
      await lookingDuring(first.items.insert(rows, 'replace'));
      acknowledged += rows.length;
    }
    await lookingDuring(Promise.all([first.close(), second?.close()]));
    assert.equal(await rowsIn(await killed(t, directory)), acknowledged);
  }
  assert.ok(looked > 15, `${looked} states`);
});

test('a backup takes the place of a store whose process was killed', async (t) => {
  const { directory } = await written(t);
  const file = join(await temporaryFolder(t), 'backup.db');
  // By another process, as a user does: SQLite locks a file that was closed here until its statements are collected as garbage.
  await run(['backup', file], { DATA_DIR: directory });
  execFileSync('cp', [file, join(directory, FILE)]);
  for (const command of ['check', 'doctor', 'serve']) {
    const { code, said, stdout } = await sluice([command], { DATA_DIR: directory });
    assert.equal(code, 1, command);
    assert.match(
      said + stdout,
      /it is a backup, but .*-wal is of the store that was there before: remove .*-wal/,
    );
  }
  for (const end of ['-wal', '-shm']) await rm(join(directory, FILE + end));
  assert.equal(await rowsIn(directory), WRITES);
});

test('a log that another process moves into the file while it is looked at is no fault', async (t) => {
  assert.equal(await faultOfLog(join(await temporaryFolder(t), `${FILE}-wal`)), null);
});
