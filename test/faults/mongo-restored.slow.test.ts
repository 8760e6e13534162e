import assert from 'node:assert/strict';
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { jsonOf, problemOf, textOf, type Page } from '../support/answers.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { ownMongod, testMongo, withDatabase } from '../support/store/mongo/mongod.ts';
import { temporaryFolder } from '../support/directory.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';

const rows = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => ({ _id: from + n, category: 'a', price: from + n }));

/** Reads behind the row 5, by the cursor of a page and by that of a stream, and the changes from now on. */
async function readsFrom(
  server: TestServer,
): Promise<readonly [page: string, stream: string, changes: string]> {
  const { page } = (await jsonOf(server.get('/items?limit=6'))) as Page;
  const cursorIn = async (path: string) =>
    /"cursor":"([\w-]+)"/.exec(await textOf(server.get(path)))?.[1] ?? '';
  const stream = await cursorIn('/items/stream?checkpoints=true&limit=6');
  const changes = await cursorIn('/items/changes');
  return [
    `/items?cursor=${page.nextCursor}`,
    `/items/stream?checkpoints=true&cursor=${stream}`,
    `/items/changes?since=${changes}`,
  ];
}

const idsIn = (text: string) => [...text.matchAll(/"id":(\d+)/g)].map(([, id]) => Number(id));

test('after mongorestore --drop, cursors of streams and changes get 410, and those of pages continue', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const server = await serverOn(t, { MONGODB_URI: uri });
  await server.insert(rows(0, 10));
  const [page, stream, changes] = await readsFrom(server);

  // What mongorestore does: it drops the collection, creates it with its options and indexes, and inserts.
  const db = testClient(t, uri).db();
  const [info] = (await db.listCollections({ name: 'items' }).toArray()) as { options?: object }[];
  const indexes = (await db.collection('items').indexes()).filter(({ name }) => name !== '_id_');
  await db.dropCollection('items');
  const restored = await db.createCollection('items', info?.options ?? {});
  await restored.insertMany(rows(0, 10).map((row) => ({ ...row, _id: row._id as never })));
  await restored.createIndexes(indexes.map(({ key, name = '' }) => ({ key, name })));

  assert.deepEqual(idsIn(await textOf(server.get(page))), [6, 7, 8, 9]);
  for (const path of [stream, changes]) {
    const { status, code } = await problemOf(server.get(path));
    assert.deepEqual([status, code], [410, 'collection-replaced'], path);
  }
});

test('after disks of an earlier time came back, all cursors continue, and those of changes do not notice it', async (t) => {
  const set = await ownMongod(t);
  const [member] = set?.members ?? [];
  if (!set || !member) return;
  const copy = join(await temporaryFolder(t), 'copy');
  const server = await serverOn(t, { MONGODB_URI: withDatabase(set.uri, 'shop') });
  const restart = async (between: () => Promise<void>): Promise<void> => {
    await member.kill();
    await between();
    await member.start();
    while ((await server.get('/readyz')).status !== 200);
  };
  await server.insert(rows(0, 10));
  await restart(() => cp(member.directory, copy, { recursive: true }));
  await server.insert(rows(10, 20));
  const [page, stream, changes] = await readsFrom(server);
  await restart(async () => {
    await rm(member.directory, { recursive: true });
    await cp(copy, member.directory, { recursive: true });
    // Within one second the time of a set counts its writes. A set that has fewer would wait up to 10 s for the time that the
    // driver has seen, until its next empty write.
    const written = Math.floor(Date.now() / 1_000);
    while (Math.floor(Date.now() / 1_000) === written) await nextTurn();
  });
  await server.insert(rows(100, 101));

  for (const path of [page, stream])
    assert.deepEqual(idsIn(await textOf(server.get(path))), [6, 7, 8, 9, 100], path);
  const text = await textOf(server.get(changes));
  assert.match(text, /"upToDate":true/);
  assert.deepEqual(idsIn(text), [100], 'a copy keeps the rows that the restore has undone');
});
