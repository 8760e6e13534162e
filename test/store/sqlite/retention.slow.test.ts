import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BSON } from '../../../src/store/bson.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import type { ChangeFeed } from '../../../src/store/change-feed.ts';
import { predicateOf } from '../../../src/store/scope-predicate.ts';
import { ChangeLog } from '../../../src/store/sqlite/log.ts';
import { type SqliteOptions } from '../../../src/store/sqlite.ts';
import type { OwnedCollection } from '../../../src/store/store.ts';
import { idIn } from '../../support/store/following.ts';
import { below, randomFrom } from '../../support/store/random-collection.ts';
import { NEVER } from '../../support/store/reading.ts';
import { openDirectory, openRaw, testDirectory } from '../../support/store/sqlite/sqlite.ts';

const SPARE = 1 + 1 / 1_024;

/** The items in a file, as one of several processes has them. */
async function openIn(t: TestContext, directory: string, options: Partial<SqliteOptions> = {}) {
  const store = await openDirectory(directory, options);
  t.after(() => store.close());
  return store.items;
}

function feedOf(items: OwnedCollection): ChangeFeed {
  return items.changes ?? assert.fail('the set has a change feed');
}

function write(items: OwnedCollection, category: string, ...ids: readonly number[]) {
  return items.insert(
    ids.map((_id) => BSON.serialize({ _id, category, price: 1 })),
    'replace',
  );
}

test('a hundred readers that wait read the log once for each write that wakes them', async (t) => {
  const items = await openIn(t, await testDirectory(t));
  await write(items, 'a', 0);
  const feed = feedOf(items);
  let place = await feed.now(NEVER);
  const read = t.mock.method(ChangeLog.prototype, 'read');
  for (const [n, most] of [250, 1_000, 2].entries()) {
    read.mock.resetCalls();
    const from = place;
    const waiting = Array.from({ length: 100 }, (_, reader) =>
      feed.read(from, { most: most + (reader % 2), waitMs: 60_000 }, undefined, new AbortController().signal),
    );
    await feed.read(from, { most, waitMs: 0 }, undefined, NEVER); // by now they have all looked
    await write(items, 'a', 2 * n, 2 * n + 1);
    for (const { keys, next } of await Promise.all(waiting)) {
      assert.equal(keys.length, 2);
      place = next;
    }
    const reads = read.mock.callCount();
    assert.ok(reads <= 4, `${reads} reads: for each number of rows before the write, and after it`);
  }
});

test('a log that several processes write and prune is within its limits', async (t) => {
  for (let seed = 1; seed <= 10; seed++) {
    const random = randomFrom(seed);
    const directory = await testDirectory(t);
    let now = 0;
    const [changesTtlMs, mostChanges] = [1 + below(random, 2_000), 1 + below(random, 60)];
    const options = { changesTtlMs, mostChanges, wallClock: () => now };
    const processes = [await openIn(t, directory, options), await openIn(t, directory, options)];
    const { connection, sets, close } = openRaw(directory);
    for (let step = 0; step < 60; step++) {
      now += below(random, random() < 0.1 ? 3_000 : 50);
      const items = processes[below(random, 2)] ?? assert.fail();
      await write(items, 'a', ...Array.from({ length: 1 + below(random, 9) }, () => below(random, 15)));
      const { number } = sets.get('items');
      const kept = connection.all(`select seq, at from l${number} order by seq`);
      const label = `seed ${seed}, step ${step}`;
      // A set of 15 rows may have twice as many changes.
      assert.ok(kept.length <= Math.max(mostChanges, 30) * SPARE, `${label}: ${kept.length} changes`);
      const old = kept.filter(({ at }) => now - Number(at) > changesTtlMs * SPARE);
      assert.deepEqual(old, [], label);
      const floor = Number(connection.get("select floor from sets where name = 'items'")?.floor);
      const last = Number(kept.at(-1)?.seq);
      assert.deepEqual(
        kept.map(({ seq }) => seq),
        Array.from({ length: last - floor }, (_, n) => floor + n + 1),
        label,
      );
    }
    close();
  }
});

test('each process keeps rows as they were for the readers of a part that another one has', async (t) => {
  const directory = await testDirectory(t);
  let now = 0;
  const options = { changesTtlMs: 1_000, wallClock: () => now };
  const [server, importer] = [await openIn(t, directory, options), await openIn(t, directory, options)];
  const part = feedOf(server).within?.(predicateOf({ where: [{ path: 'category', value: 'a' }], hide: [] }));
  assert.ok(part);
  const matching = async (place: Awaited<ReturnType<typeof part.now>>) => {
    const { keys, matchedBefore } = await part.read(place, { most: 100, waitMs: 0 }, undefined, NEVER);
    return keys
      .filter((key) => matchedBefore.has(Buffer.from(key).toString('latin1')))
      .map((key) => Number(idIn(key)));
  };
  await write(importer, 'a', 1, 2, 3);
  await write(importer, 'b', 3, 4);
  const place = await part.now(NEVER);
  assert.deepEqual(await matching(place), [], 'what came before is not known');
  await write(importer, 'b', 1);
  await importer.remove([makeBookmark({ _id: 2 })]);
  await write(importer, 'a', 3, 4, 5);
  assert.deepEqual(await matching(place), [1, 2]);

  now = 400; // a reader renews its wish
  await part.now(NEVER);
  now = 1_200;
  await write(importer, 'b', 3);
  const rows = openRaw(directory);
  const kept = () =>
    Number(rows.connection.get(`select count(b) n from l${rows.sets.get('items').number}`)?.n);
  assert.ok(kept() > 0, 'it is kept as long as changes are');
  now = 3_000;
  await write(importer, 'a', 1);
  await nextTurn();
  assert.equal(kept(), 0, 'without readers rows are no longer kept, and old changes are removed');
  rows.close();
});
