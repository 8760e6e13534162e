import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  copyFile,
  mkdir,
  open as openForWriting,
  readdir,
  readFile,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError } from '../../../src/base/errors.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { BSON, Int32 } from '../../../src/store/values/bson.ts';
import { DatabaseSync } from '../../../src/base/sqlite.ts';
import { FILE } from '../../../src/store/sqlite/file/file.ts';
import { meta, setMeta } from '../../../src/store/sqlite/file/layout.ts';
import { makeItem, makeItems, insertItems } from '../../support/store/items.ts';
import { openDirectory, openFor, openRaw } from '../../support/store/sqlite/sqlite.ts';
import { NEVER, PLENTY, readRows } from '../../support/store/reading.ts';
import { readRow } from '../../../src/store/turns/read-row.ts';
import { temporaryFolder } from '../../support/directory.ts';

const BY_ID = { sort: '_id', direction: 1 } as const;
const SIZE = { rows: 1000, bytes: PLENTY };
const bytesOf = (items: readonly { bytes: Buffer }[]) => items.map(({ bytes }) => bytes);

test('one call is written completely, however many transactions it takes', async (t) => {
  const directory = await temporaryFolder(t);
  const store = await openFor(t, directory, { transactionRows: 7 });
  const items = makeItems(100);
  const calls = [items.slice(0, 40), items.slice(20, 70), items.slice(60)];
  const results = await Promise.all(calls.map((rows) => insertItems(store.items, rows, 'skip')));
  assert.deepEqual(
    results.map(({ written, skipped }) => written + skipped),
    [40, 50, 40],
  );
  assert.equal(
    results.reduce((sum, { written }) => sum + written, 0),
    100,
  );
  const file = openRaw(directory);
  t.after(() => file.close());
  assert.deepEqual([file.count(), file.faults()], [100, []]);
});

test('a closed store has written what it accepted, and rejects every later call as unavailable', async (t) => {
  const store = await openDirectory(await temporaryFolder(t));
  const { bytes, id } = makeItem('a', 'b', new Int32(1));
  const inserting = makeItems(200).map((item) => insertItems(store.items, [item]));
  await store.close();
  for (const { written } of await Promise.all(inserting)) assert.equal(written, 1);
  const unavailable = (error: unknown) => error instanceof AppError && error.code === 'store-unavailable';
  await assert.rejects(store.ping(), unavailable);
  await assert.rejects(store.items.read(BY_ID, {}, SIZE, NEVER), unavailable);
  await assert.rejects(readRow(store.items, makeBookmark({ _id: id }), NEVER), unavailable);
  await assert.rejects(store.items.insert([bytes], 'fail'), unavailable);
});

test('a directory that cannot be created is refused at once, and two opens can create the same directory', async (t) => {
  if (process.platform === 'linux')
    await assert.rejects(
      openDirectory('/proc/sluice/data'),
      /DATA_DIR must be a directory that this process can write to: ENOENT.*\/proc\/sluice/,
    );
  const directory = await temporaryFolder(t);
  await writeFile(join(directory, 'file'), '');
  await assert.rejects(
    openDirectory(join(directory, 'file')),
    /DATA_DIR must be a directory that this process can write to: .*file is not a directory/,
  );
  const deep = join(directory, 'a', 'b', 'c');
  const stores = await Promise.all([deep, deep].map((place) => openDirectory(place)));
  await Promise.all(stores.map((store) => store.close()));
});

test('a truncated file is refused and left unchanged', async (t) => {
  const directory = await temporaryFolder(t);
  const store = await openDirectory(directory);
  await insertItems(store.items, makeItems(2_000));
  await store.close();
  const whole = await readFile(join(directory, FILE));
  await writeFile(join(directory, FILE), whole.subarray(0, whole.length - 60 * 4096));
  await assert.rejects(openDirectory(directory), /it is truncated to \d+ bytes/);
  await writeFile(join(directory, FILE), whole);
  const again = await openDirectory(directory);
  assert.equal((await readRows(again.items, BY_ID, {}, SIZE)).rows.length, 1000);
  await again.close();
});

test('a foreign file is refused and left unchanged', async (t) => {
  const foreign = await temporaryFolder(t);
  const other = new DatabaseSync(join(foreign, FILE));
  other.exec('create table theirs(a)');
  other.close();
  await assert.rejects(openDirectory(foreign), /it is a file of another program/);

  const newer = await temporaryFolder(t);
  await (await openDirectory(newer)).close();
  const { connection, close } = openRaw(newer);
  setMeta(connection, 'format', 'sluice 99');
  close();
  await assert.rejects(openDirectory(newer), /it has the format "sluice 99"/);

  for (const text of ['no SQLite'.repeat(3_000), 'short']) {
    const directory = await temporaryFolder(t);
    await writeFile(join(directory, FILE), text);
    await assert.rejects(openDirectory(directory), /it is not an SQLite file/);
    assert.equal(await readFile(join(directory, FILE), 'utf8'), text);
  }
});

test('a directory of version 0.2 is refused with the way to bring its rows over, and left unchanged', async (t) => {
  const directory = await temporaryFolder(t);
  const old = join(directory, 'items.mdb');
  await writeFile(old, 'rows');
  const message =
    `${old} is a store of sluice 0.2, which this version cannot read.\n` +
    'It holds items, resources that imports have made, with their indexes, and users; its exports end with it.\n' +
    'Start sluice 0.2 on it, and take all of them over into another DATA_DIR with this version:\n';
  const error = await openDirectory(directory).catch((refused: unknown) => refused);
  assert.ok(error instanceof Error && error.message.startsWith(message), String(error));
  for (const command of [
    'sluice pull http:',
    'sluice import items',
    'sluice users export',
    'sluice users import',
  ])
    assert.ok(error.message.includes(command), command);
  assert.deepEqual(await readdir(directory), ['items.mdb']);
  assert.equal(await readFile(old, 'utf8'), 'rows');
});

test('a store that another process makes during the look at its directory is opened', async (t) => {
  const elsewhere = await temporaryFolder(t);
  const directory = await temporaryFolder(t);
  const open = (at: string) => openDirectory(at);
  await (await open(elsewhere)).close();
  // A pipe in place of the mark holds the look until the other process is ready, which makes its file first.
  const mark = join(directory, 'sluice.mark');
  await mkdir(directory, { recursive: true });
  execFileSync('mkfifo', [mark]);
  const opening = open(directory);
  const pipe = await openForWriting(mark, 'w');
  await copyFile(join(elsewhere, FILE), join(directory, FILE));
  await pipe.writeFile(await readFile(join(elsewhere, 'sluice.mark')));
  await copyFile(join(elsewhere, 'sluice.mark'), `${mark}.whole`);
  await rename(`${mark}.whole`, mark);
  await pipe.close();
  const store = await opening;
  t.after(() => store.close());
  assert.equal((await readRows(store.items, BY_ID, {}, SIZE)).rows.length, 0);
});

test('a file that is replaced or removed while a process has it open is neither read nor written', async (t) => {
  for (const name of [FILE, `${FILE}-wal`])
    for (const isReplaced of [true, false]) {
      const directory = await temporaryFolder(t);
      const warnings: string[] = [];
      const store = await openDirectory(directory, { onWarning: (message) => warnings.push(message) });
      await insertItems(store.items, makeItems(10));
      const unfit = { code: 'store-unfit', status: 503 };
      const path = join(directory, name);
      const other = join(directory, 'other');
      execFileSync('cp', [path, other]);
      if (isReplaced) await rename(other, path);
      else await rm(path);
      const { bytes } = makeItem('a', 'b', new Int32(1));
      await assert.rejects(store.items.insert([bytes], 'replace'), unfit);
      await assert.rejects(store.items.read(BY_ID, {}, SIZE, NEVER), unfit);
      await assert.rejects(store.ping(), unfit);
      assert.match(
        String(warnings),
        /was replaced or removed while this process has it open: .* started again/,
      );
      const before = isReplaced ? await readFile(path) : null;
      await store.close();
      if (before) assert.deepEqual(await readFile(path), before, 'what was put there stays as it is');
    }
});

test('a store that is gone, is another one or is older than its last clean stop is not begun anew', async (t) => {
  const directory = await temporaryFolder(t);
  const path = join(directory, FILE);
  const mark = join(directory, 'sluice.mark');
  const open = () => openDirectory(directory);
  const written = async (ids: readonly number[]) => {
    const store = await open();
    await store.items.insert(
      bytesOf(ids.map((id) => makeItem(new Int32(id), 'a', new Int32(id)))),
      'replace',
    );
    await store.close();
    return readFile(path);
  };
  const isRefused = (why: string) =>
    assert.rejects(open(), (error: Error) => {
      assert.ok(error.message.includes(why), error.message);
      assert.match(error.message, /restore a backup, or remove sluice\.mark to begin anew/);
      return true;
    });
  const first = await written([1]);
  const second = await written([1, 2]);

  await rm(path);
  await isRefused('is missing or empty');
  await writeFile(path, '');
  await isRefused('is missing or empty');
  await writeFile(path, first);
  await isRefused('is older than its last clean stop');
  const elsewhere = await temporaryFolder(t);
  await (await openDirectory(elsewhere)).close();
  await writeFile(path, await readFile(join(elsewhere, FILE)));
  await isRefused('is another store');
  await writeFile(path, second);
  await written([1, 2, 3]);

  await Promise.all([rm(path), rm(mark)]);
  const anew = await open();
  t.after(() => anew.close());
  assert.equal((await readRows(anew.items, BY_ID, {}, SIZE)).rows.length, 0);
});

test('a file of version 0.3 opens with its rows, and gets the format that 0.3 refuses', async (t) => {
  const directory = await temporaryFolder(t);
  const first = await openDirectory(directory);
  await first.items.insert([BSON.serialize({ _id: 1, category: 'a', price: 1 })], 'fail');
  await first.close();
  const old = openRaw(directory);
  old.connection.exec('drop table epochs');
  setMeta(old.connection, 'format', 'sluice 3');
  setMeta(old.connection, 'epoch', '0123456789abcdef');
  old.close();
  await (await openDirectory(directory)).close();
  const file = openRaw(directory);
  assert.equal(meta(file.connection, 'format'), 'sluice 4');
  assert.deepEqual([file.rows().length, file.faults()], [1, []]);
  file.close();
});
