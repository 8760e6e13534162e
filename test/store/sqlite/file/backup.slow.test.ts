/** Backups of the embedded store, checks of its file, and what becomes of cursors when a backup is restored. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { copyFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { BSON, Int32 } from '../../../../src/store/values/bson.ts';
import { backUp } from '../../../../src/store/sqlite/file/backup.ts';
import { check } from '../../../../src/store/sqlite/file/check.ts';
import { storedRow } from '../../../../src/store/sqlite/file/checked-rows.ts';
import { FILE } from '../../../../src/store/sqlite/file/file.ts';
import { rowsTable } from '../../../../src/store/sqlite/file/layout.ts';
import type { OwnedCollection } from '../../../../src/store/store.ts';
import { sluice } from '../../../support/process/commands.ts';
import { childServer } from '../../../support/process/child-server.ts';
import { makeItem, makeItems, insertItems } from '../../../support/store/items.ts';
import { NEVER, PLENTY, readRows } from '../../../support/store/reading.ts';
import { serverOn, type TestServer } from '../../../support/process/server.ts';
import { ITEMS, openDirectory, openFor, openRaw } from '../../../support/store/sqlite/sqlite.ts';
import { temporaryFolder } from '../../../support/directory.ts';

const ORDERS = { name: 'orders', collection: 'orders', indexes: [['status']] };
const BY_ID = { sort: '_id', direction: 1 } as const;
const QUIET = { replaces: false, onPages: () => undefined, signal: NEVER };

function rowsOf(from: number, to: number): Uint8Array[] {
  return Array.from({ length: to - from }, (_, n) =>
    BSON.serialize({ _id: from + n, category: 'a', status: 'a', price: n }),
  );
}

async function faultsOf(path: string): Promise<readonly string[]> {
  const lines: string[] = [];
  return (await check(path, (line) => lines.push(line))) === 0 ? [] : lines;
}

test('a backup beside a server that takes writes has every write that was acknowledged before, and both are whole', async (t) => {
  const directory = await temporaryFolder(t);
  const settings = { MONGODB_URI: '', DATA_DIR: directory, SAMPLE: 'auto', RATE_LIMIT: 'off' };
  const server = await childServer(t, settings);
  let written = 0;
  const until = new AbortController();
  const writing = (async () => {
    while (!until.signal.aborted) {
      const body = JSON.stringify({ name: `n${written}`, email: 'a@b.example' });
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(new URL(`/api/users/u${written}`, server.url), {
        method: 'PUT',
        headers,
        body,
      });
      assert.equal(answer.status, 201, await answer.text());
      written++;
    }
  })();
  const file = join(await temporaryFolder(t), 'backup.db');
  while (written < 20) await new Promise((resolve) => setImmediate(resolve));
  const before = written;
  const ended = await sluice(['backup', file], settings);
  assert.deepEqual([ended.code, ended.said], [0, '']);
  assert.match(ended.stdout, /backup\.db has [\d,]+ bytes\n$/);
  const checked = await sluice(['check'], settings);
  until.abort();
  await writing;
  assert.equal(checked.code, 0, checked.stdout);
  assert.match(checked.stdout, /^items: 53940 rows, 3 indexes\n/m);
  assert.match(checked.stdout, /sluice\.db is whole\n$/);
  assert.equal((await sluice(['check', file], {})).code, 0);
  assert.deepEqual(await readdir(join(file, '..')), ['backup.db']);

  const exists = await sluice(['backup', file], settings);
  const itself = join(directory, FILE);
  assert.deepEqual([exists.code, exists.said], [1, `sluice: ${file} exists: use --replace to replace it\n`]);
  assert.equal((await sluice(['backup', file, '--replace'], settings)).code, 0);
  assert.match((await sluice(['backup', itself, '--replace'], settings)).said, /is the store itself/);
  assert.equal(await server.end('SIGTERM'), 0);

  const restored = await temporaryFolder(t);
  await copyFile(file, join(restored, FILE));
  await (await openFor(t, restored)).close();
  const { count, close } = openRaw(restored);
  const users = count('users');
  close();
  assert.ok(users >= before && users <= written, `${before} of ${users} of ${written}`);
});

test('backups are for their user alone, from their first byte, and remove what a killed one of their name has left', async (t) => {
  const directory = await temporaryFolder(t);
  const other = await temporaryFolder(t);
  const store = await openFor(t, directory);
  await store.items.insert(rowsOf(0, 30_000), 'fail');
  const from = join(directory, FILE);
  const to = join(other, 'backup.db');
  const left = `backup.db.${randomUUID()}`;
  const kept = ['backup.db.1', `backup.db.${randomUUID()}.txt`, `others.db.${randomUUID()}`];
  for (const name of [left, `${left}-journal`, ...kept]) await writeFile(join(other, name), '');
  const modes = new Set<string>();
  const onPages = () => {
    for (const name of readdirSync(other))
      if (!kept.includes(name)) modes.add((statSync(join(other, name)).mode & 0o777).toString(8));
  };
  const umask = process.umask(0);
  t.after(() => process.umask(umask));
  await backUp({ ...QUIET, from, to, onPages });
  onPages();
  assert.deepEqual([...modes], ['600']);
  assert.deepEqual((await readdir(other)).sort(), ['backup.db', ...kept].sort());
});

test('a backup that is interrupted or cannot be written leaves nothing behind', async (t) => {
  const directory = await temporaryFolder(t);
  const other = await temporaryFolder(t);
  const store = await openFor(t, directory);
  await store.items.insert(rowsOf(0, 30_000), 'fail');
  const from = join(directory, FILE);
  const to = join(other, 'backup.db');
  const interrupt = new AbortController();
  const onPages = () => interrupt.abort(new Error('interrupted'));
  await assert.rejects(backUp({ ...QUIET, from, to, onPages, signal: interrupt.signal }), /interrupted/);
  await assert.rejects(backUp({ ...QUIET, from, to: join(other, 'no', 'backup.db') }));
  await assert.rejects(backUp({ ...QUIET, from: join(other, FILE), to }), /is missing or empty/);
  assert.deepEqual(await readdir(other), []);
  assert.ok((await backUp({ ...QUIET, from, to })) > 1_000_000);
});

test('the commands for the file take no MongoDB, and say how they are used', async () => {
  const mongo = { MONGODB_URI: 'mongodb://127.0.0.1:1/' };
  for (const command of ['backup', 'check']) {
    const args = command === 'backup' ? ['backup', '/tmp/x'] : ['check'];
    const { code, said } = await sluice(args, mongo);
    assert.equal(code, 2);
    assert.match(said, new RegExp(`^sluice: ${command} is for the embedded store, and MONGODB_URI is set`));
    assert.match((await sluice([command, '--help'], {})).stdout, new RegExp(`^Usage: sluice ${command}`));
  }
  assert.equal((await sluice(['backup'], {})).code, 2);
  assert.equal((await sluice(['check', 'a', 'b'], {})).code, 2);
});

test('a check names rows, entries, counters and indexes that are wrong, and finds nothing in a store that is right', async (t) => {
  const directory = await temporaryFolder(t);
  const path = join(directory, FILE);
  const store = await openDirectory(directory);
  const orders = await store.open(ORDERS);
  await orders.insert(rowsOf(0, 2_000), 'fail');
  await orders.insert([BSON.serialize({ _id: 'long', status: 'x'.repeat(100_000) })], 'fail');
  await orders.insert([BSON.serialize({ _id: 'array', status: ['spoils the index'] })], 'fail');
  await insertItems(store.items, makeItems(500));
  await store.close();
  assert.deepEqual(await faultsOf(path), []);
  const { connection, sets, close } = openRaw(directory);
  const table = rowsTable(sets.get(ITEMS).number);
  const { bytes } = makeItem(new Int32(-7), 'a', new Int32(1));
  connection.run(`update ${table} set d = ? where n = 3`, storedRow(bytes));
  connection.run(`update ${table} set d = d || x'00' where n = 4`);
  connection.run(`update ${table} set i1 = x'00' where n = 5`);
  connection.run("update sets set rows = 7 where name = 'resource items'");
  connection.exec(`drop index i2_${sets.get(ITEMS).number}`);
  close();
  const faults = await faultsOf(path);
  for (const line of [
    /^items: the index i2_\d+ is missing$/,
    /^items: row 3 has another key$/,
    /^items: row 3 has another entry in the index category_1__id_1$/,
    /^items: row 4 does not have the bytes that were written$/,
    /^items: row 5 has another entry in the index price_1__id_1$/,
    /^items: there are 500 rows, and the counter says 7$/,
    /^orders: 2002 rows, 1 indexes$/,
  ])
    assert.ok(
      faults.some((fault) => line.test(fault)),
      `${line} in ${faults.join('\n')}`,
    );
  await writeFile(path, 'no store'.repeat(1_000));
  const { code, said } = await sluice(['check'], { DATA_DIR: directory });
  assert.equal(code, 1);
  assert.match(said, /^sluice: .*sluice\.db cannot be read: it is not an SQLite file\n$/);
});

interface Cursors {
  readonly page: string;
  readonly stream: string;
  readonly changes: string;
}

/** Places of readers of a set, behind its first rows. */
async function cursorsOf(server: TestServer, set: string): Promise<Cursors> {
  const page = await server.get(`/${set}?limit=2`);
  const { page: shown } = (await page.json()) as { page: { nextCursor: string } };
  const endOf = async (path: string): Promise<string> => {
    const line = (await (await server.get(path)).text()).trim().split('\n').at(-1) ?? '';
    return (JSON.parse(line) as { end: { cursor: string } }).end.cursor;
  };
  const stream = await endOf(`/${set}/stream?limit=3&checkpoints=true`);
  return { page: shown.nextCursor, stream, changes: await endOf(`/${set}/changes`) };
}

test('cursors of what a restored backup undid are 410, and never skip what is written afterwards', async (t) => {
  const directory = await temporaryFolder(t);
  const store = await openDirectory(directory);
  const sets: Record<string, OwnedCollection> = { items: store.items, orders: await store.open(ORDERS) };
  for (const rows of Object.values(sets)) await rows.insert(rowsOf(0, 10), 'fail');
  const environment = { MONGODB_URI: '', DATA_DIR: directory };
  const server = await serverOn(t, environment);
  const from = join(directory, FILE);
  const to = join(await temporaryFolder(t), 'backup.db');
  const before = { items: await cursorsOf(server, 'items'), orders: await cursorsOf(server, 'orders') };
  await backUp({ ...QUIET, from, to });
  for (const rows of Object.values(sets)) await rows.insert(rowsOf(10, 20), 'fail');
  const after = { items: await cursorsOf(server, 'items'), orders: await cursorsOf(server, 'orders') };
  const following = await server.get(`/items/changes?since=${after.items.changes}&follow=true`);
  await store.close();
  await server.close();
  await following.text().catch(() => undefined);

  const place = await temporaryFolder(t); // this process may still have locks on the old file
  await copyFile(join(directory, 'sluice.mark'), join(place, 'sluice.mark'));
  await copyFile(to, join(place, FILE));
  const again = await openFor(t, place);
  const written: Record<string, OwnedCollection> = { items: again.items, orders: await again.open(ORDERS) };
  // More changes than were undone: the numbers of the places are below those of the log again.
  for (const rows of Object.values(written)) await rows.insert(rowsOf(100, 150), 'fail');
  const restored = await serverOn(t, { ...environment, DATA_DIR: place });
  for (const [set, cursors] of [...Object.entries(before), ...Object.entries(after)])
    for (const path of [
      `/stream?cursor=${cursors.stream}`,
      `/changes?since=${cursors.changes}`,
      `/changes?since=${cursors.changes}&follow=true`,
    ]) {
      const answer = await restored.get(`/${set}${path}`);
      assert.equal(answer.status, 410, `${set}${path}: ${await answer.text()}`);
      const page = await restored.get(`/${set}?limit=2&cursor=${cursors.page}`);
      assert.equal(page.status, 200, 'a page continues behind its row in any rows of the name');
    }
  for (const set of ['items', 'orders']) {
    const { changes, page } = await cursorsOf(restored, set);
    assert.equal((await restored.get(`/${set}/changes?since=${changes}`)).status, 200);
    assert.equal((await restored.get(`/${set}?limit=2&cursor=${page}`)).status, 200);
    const all = await restored.get(`/${set}/stream`);
    assert.equal((await all.text()).trim().split('\n').length, 60);
  }
  const { changes: kept } = await cursorsOf(restored, 'items');
  await restored.close();
  await again.close();
  const next = await serverOn(t, { ...environment, DATA_DIR: place });
  assert.equal(
    (await next.get(`/items/changes?since=${kept}`)).status,
    200,
    'the epoch goes on at the next start',
  );
});

test('the log of the store that was there before is not taken for that of a restored backup', async (t) => {
  const directory = await temporaryFolder(t);
  const store = await openDirectory(directory);
  await store.items.insert(rowsOf(0, 10), 'fail');
  const from = join(directory, FILE);
  const to = join(await temporaryFolder(t), 'backup.db');
  await backUp({ ...QUIET, from, to });
  await store.items.insert(rowsOf(10, 20), 'fail');
  const killed = await temporaryFolder(t);
  for (const file of ['sluice.mark', `${FILE}-wal`, `${FILE}-shm`])
    await copyFile(join(directory, file), join(killed, file));
  await store.close();
  await copyFile(to, join(killed, FILE));
  await assert.rejects(
    openDirectory(killed),
    /it is a backup, but .*-wal is of the store that was there before: remove .*-wal and .*-shm/,
  );
  for (const file of [`${FILE}-wal`, `${FILE}-shm`]) await rm(join(killed, file));
  const restored = await openFor(t, killed);
  assert.equal((await readRows(restored.items, BY_ID, {}, { rows: 100, bytes: PLENTY })).rows.length, 10);
});
