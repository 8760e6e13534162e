import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { join } from 'node:path';
import { BSON } from '../src/store/bson.ts';
import { makeBookmark } from '../src/store/bookmark.ts';
import { Commits } from '../src/store/lmdb/commits.ts';
import { digestOfValues } from '../src/store/lmdb/feed/before.ts';
import { ChangeLog, ITEMS } from '../src/store/lmdb/feed/log.ts';
import { openFile, tablesOf } from '../src/store/lmdb/file.ts';
import { removeItems } from '../src/store/lmdb/remove-items.ts';
import { LmdbWriter } from '../src/store/lmdb/write.ts';
import { viewOf } from '../src/store/part-view.ts';
import { textOf } from '../src/store/shared-feed.ts';
import { testDirectory } from './support/lmdb.ts';

const GATE = { isUnderWay: false, untilFree: () => Promise.resolve() };
const TTL_MS = 1_000;
const WHERE = [{ path: 'category', value: 'a' }];
const VIEW = viewOf({ where: WHERE, hide: [] });

/** The log of items in a file, as one of several processes has it. */
function openLog(t: TestContext, directory: string, now: () => number) {
  const file = openFile(join(directory, 'items.mdb'));
  t.after(() => file.close());
  const tables = tablesOf(file);
  const commits = new Commits(file, {
    check: () => undefined,
    faultOf: (error) => Promise.resolve(error),
    onLost: (failure) => assert.fail(failure),
  });
  const log = new ChangeLog(tables, { ttlMs: TTL_MS, now });
  const writer = new LmdbWriter(tables, commits, GATE, log);
  return {
    log,
    keep: (view = VIEW) => commits.run(() => log.views.keep(ITEMS, view, log.state(ITEMS).last)),
    write: (category: string, ...ids: readonly number[]) =>
      writer.insert(
        ids.map((_id) => BSON.serialize({ _id, category, price: 1 })),
        'replace',
      ),
    remove: (...ids: readonly number[]) =>
      commits.run(() =>
        removeItems(
          tables,
          log,
          ids.map((_id) => makeBookmark({ _id })),
        ),
      ),
    views: () => {
      file.resetReadTxn();
      return log.views.of(ITEMS);
    },
    inside: (view: number) => {
      file.resetReadTxn();
      const { ids, wereInside } = log.read(ITEMS, 0, 100, { view, digest: digestOfValues(WHERE) });
      return ids.filter((id) => wereInside.has(textOf(id))).map((id) => BSON.deserialize(id)._id as number);
    },
  };
}

test('each process notes what rows were for the views that another one keeps', async (t) => {
  const directory = await testDirectory(t);
  const [server, importer] = [openLog(t, directory, () => 0), openLog(t, directory, () => 0)];
  await importer.write('a', 1, 2, 3);
  await importer.write('b', 4);
  await importer.write('b', 3);
  assert.equal(await server.keep(), true);
  const [view = assert.fail()] = importer.views();
  assert.deepEqual(importer.inside(view.number), [], 'what came before is not known');
  await importer.write('b', 1);
  await importer.remove(2);
  await importer.write('a', 3, 4);
  await importer.write('a', 5);
  assert.deepEqual(server.inside(view.number), [1, 2]);
});

test('a view that no reader has for as long as changes are kept is dropped, and a set has 32 of them', async (t) => {
  let now = 0;
  const { log, keep, views } = openLog(t, await testDirectory(t), () => now);
  const other = (n: number) => viewOf({ where: [{ path: `f${n}`, value: 1 }], hide: [] });
  const isDue = (view = VIEW) => {
    views(); // begins a look
    return log.views.isDue(ITEMS, view);
  };
  assert.equal(isDue(), true);
  await keep();
  assert.equal(isDue(), false);
  for (let n = 1; n < 32; n++) assert.equal(await keep(other(n)), true);
  assert.equal(await keep(other(32)), false, 'one too many');
  assert.equal(views().length, 32);
  now = TTL_MS / 2;
  assert.equal(isDue(), true, 'to be marked as used');
  await keep();
  now = TTL_MS + 1;
  assert.equal(await keep(other(32)), true, 'the others are gone');
  assert.deepEqual(
    views().map(({ number, where }) => [number, ...where]),
    [
      [0, 'category'],
      [32, 'f32'],
    ],
  );
  now = 3 * TTL_MS;
  await keep();
  assert.deepEqual(
    views().map(({ number, since }) => [number, since]),
    [[0, 0]],
    'a view that is kept again is the same one while it is there',
  );
});
