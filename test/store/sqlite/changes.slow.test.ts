import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BSON, Decimal128, Int32 } from '../../../src/store/values/bson.ts';
import type { AppError } from '../../../src/base/errors.ts';
import type { FeedPlace } from '../../../src/store/change-feed.ts';
import { makeBookmark, textOf } from '../../../src/store/bookmark.ts';
import { predicateOf } from '../../../src/store/scope/predicate.ts';
import { LogWatch } from '../../../src/store/sqlite/changes/watch.ts';
import type { OwnedCollection, Store } from '../../../src/store/store.ts';
import { SEED } from '../../support/seed.ts';
import { startProgram } from '../../support/process/child-program.ts';
import { Follower, idIn, nameOf } from '../../support/store/following.ts';
import { BY_ID, feedOf, lookUp } from '../../support/store/changes.ts';
import { startFill } from '../../support/store/filling.ts';
import { makeItems } from '../../support/store/items.ts';
import { ITEMS, openDirectory, openFor, openRaw } from '../../support/store/sqlite/sqlite.ts';
import { below, randomFrom } from '../../support/store/random-collection.ts';
import { NEVER, PLENTY, readRows } from '../../support/store/reading.ts';
import { temporaryFolder } from '../../support/directory.ts';

const ORDERS = { name: 'orders', collection: 'orders', indexes: [['status']] };
const DAY = 24 * 60 * 60_000;
const EXPIRED = { code: 'changes-expired', status: 410 };
const NOW = { most: 1_000, waitMs: 0 };
const SPARE = 1 + 1 / 1_024;

function write(rows: OwnedCollection, ids: readonly unknown[], status = 'a') {
  return rows.insert(
    ids.map((_id) => BSON.serialize({ _id, status, category: 'a', price: 1 })),
    'replace',
  );
}

async function since(rows: OwnedCollection, place: FeedPlace): Promise<unknown[]> {
  const { identity } = await rows.describe(NEVER);
  const { keys, isUpToDate } = await feedOf(rows).read(place, NOW, identity, NEVER);
  assert.equal(isUpToDate, true);
  return keys.map((key) => (BSON.deserialize(key) as { _id: unknown })._id);
}

/** The number of changes in the log of the resource. */
function changesIn(directory: string): number {
  const { changes, close } = openRaw(directory);
  const count = changes('resource orders');
  close();
  return count;
}

const openOrders = (store: Store) => store.open(ORDERS);

test('changes are kept for their time, and then removed with later writes', async (t) => {
  const directory = await temporaryFolder(t);
  let now = Date.UTC(2026, 0, 1);
  const options = { wallClock: () => now, changesTtlMs: 7 * DAY };
  const rows = await openOrders(await openFor(t, directory, options));
  const feed = feedOf(rows);
  const places = [await feed.now(NEVER)];
  for (const id of [1, 2, 3]) {
    await write(rows, [id]);
    places.push(await feed.now(NEVER));
    now += DAY;
  }
  now += 4 * DAY; // the first write is seven days old
  await write(rows, [4]);
  assert.deepEqual(await since(rows, places[0] ?? assert.fail()), [1, 2, 3, 4]);
  now += (7 * DAY) / 1_024 + 1; // removed when some more time has passed, so that most writes need no look at the log
  await write(rows, [5]);
  await assert.rejects(since(rows, places[0] ?? assert.fail()), EXPIRED);
  assert.deepEqual(await since(rows, places[1] ?? assert.fail()), [2, 3, 4, 5]);
  now += 30 * DAY;
  for (const id of [6, 7]) await write(rows, [id]);
  for (const place of places) await assert.rejects(since(rows, place), EXPIRED);
  assert.equal(changesIn(directory), 2);
});

test('a clock that leaps and comes back hides no removal from a reader of a part', async (t) => {
  const random = randomFrom(SEED);
  for (let round = 0; round < 20; round++) {
    let now = Date.UTC(2026, 0, 1);
    const rows = await openOrders(
      await openFor(t, await temporaryFolder(t), { wallClock: () => now, changesTtlMs: 7 * DAY }),
    );
    const part = feedOf(rows).within?.(predicateOf({ where: [{ path: 'status', value: 'a' }], hide: [] }));
    assert.ok(part);
    const reached: { place: FeedPlace; has: Set<number> }[] = [];
    const has = new Set<number>();
    for (let step = 0; step < 12; step++) {
      now += (below(random, 3) - 1) * below(random, 16) * DAY;
      const id = below(random, 3);
      if (random() < 0.4) reached.push({ place: await part.now(NEVER), has: new Set(has) });
      else if (has.delete(id)) await rows.remove([makeBookmark({ _id: id })]);
      else await write(rows, [(has.add(id), id)]);
    }
    for (const { place, has: had } of reached) {
      const changed = await part.read(place, NOW, undefined, NEVER).catch((error: unknown) => {
        assert.equal((error as AppError).code, 'changes-expired');
        return null;
      });
      const told = changed?.keys
        .filter((key) => changed.matchedBefore.has(textOf(key)))
        .map((key) => (BSON.deserialize(key) as { _id: number })._id);
      for (const id of had)
        if (told && !has.has(id)) assert.ok(told.includes(id), `${round}: ${id} is removed`);
    }
  }
});

test('old changes are removed when the store is opened', async (t) => {
  const directory = await temporaryFolder(t);
  const first = await openDirectory(directory, { transactionRows: 1 });
  const written = await openOrders(first);
  await write(
    written,
    Array.from({ length: 99 }, (_, n) => n),
  );
  const place = await feedOf(written).now(NEVER);
  await write(written, ['the last']);
  await first.close();
  assert.equal(changesIn(directory), 100);
  const later = { wallClock: () => Date.now() + 8 * DAY };
  const second = await openDirectory(directory, later);
  const pruned = await openOrders(second);
  const isKept = () =>
    since(pruned, place).then(
      () => true,
      (error: unknown) => {
        assert.equal((error as AppError).code, 'changes-expired');
        return false;
      },
    );
  while (await isKept()) await nextTurn();
  await second.close();
  assert.equal(changesIn(directory), 0);
  const rows = await openOrders(await openFor(t, directory, later));
  const present = await feedOf(rows).now(NEVER);
  await write(rows, ['new']);
  assert.deepEqual(await since(rows, present), ['new']);
});

test('the log keeps no more changes than it may, and those that it keeps are the last', async (t) => {
  const directory = await temporaryFolder(t);
  const rows = await openOrders(await openFor(t, directory, { mostChanges: 20, transactionRows: 5 }));
  const feed = feedOf(rows);
  const places: FeedPlace[] = [];
  for (let n = 0; n < 30; n++) {
    places.push(await feed.now(NEVER));
    await write(rows, [1, 2, 3], `status ${n}`);
  }
  const outcomes = await Promise.allSettled(places.map((place) => since(rows, place)));
  const isKept = outcomes.map(({ status }) => status === 'fulfilled');
  assert.deepEqual(isKept, [...Array<boolean>(24).fill(false), ...Array<boolean>(6).fill(true)]);
  assert.equal(changesIn(directory), 20);
});

for (const isEmpty of [true, false])
  test(`readers of changes go on beside a load into ${isEmpty ? 'an empty resource' : 'one with rows'}, and all places before its end expire`, async (t) => {
    const directory = await temporaryFolder(t);
    const store = await openFor(t, directory);
    const other = await openFor(t, directory);
    const rows = await openOrders(store);
    if (!isEmpty) await write(rows, ['old']);
    const feed = feedOf(rows);
    const { identity } = await rows.describe(NEVER);
    const place = await feed.now(NEVER);
    const fill = startFill(await openOrders(other), { replaces: !isEmpty, onConflict: 'skip' });
    fill.add(makeItems(20).map(({ bytes }) => bytes));
    await fill.asks();
    await write(rows, ['meanwhile', 'too']);
    await rows.remove([makeBookmark({ _id: 'too' })]);
    assert.deepEqual(await since(rows, place), ['meanwhile', 'too']);
    assert.equal((await lookUp(feed, [makeBookmark({ _id: 'meanwhile' })], BY_ID)).length, 1);
    const late = await feed.now(NEVER);
    const waiting = feed.read(late, { most: 1, waitMs: 60_000 }, identity, NEVER);
    fill.end();
    await Promise.all([
      fill.done,
      assert.rejects(waiting, isEmpty ? EXPIRED : { code: 'collection-replaced', status: 410 }),
    ]);
    await assert.rejects(since(rows, place), EXPIRED);
    assert.equal((await rows.count(BY_ID, 'exact', NEVER)).rows, 21, 'a row that came meanwhile is there');
    const present = await feed.now(NEVER);
    await write(rows, ['new']);
    assert.deepEqual(await since(rows, present), ['new']);
    const file = openRaw(directory);
    assert.deepEqual(file.faults('resource orders'), []);
    file.close();
  });

test('a place in another file, or ahead of the log, has expired', async (t) => {
  const rows = await openOrders(await openFor(t, await temporaryFolder(t)));
  const other = await openOrders(await openFor(t, await temporaryFolder(t)));
  await write(rows, [1]);
  await write(other, [1]);
  const { token } = await feedOf(rows).now(NEVER);
  await assert.rejects(feedOf(other).read({ token }, NOW, undefined, NEVER), EXPIRED);
  const ahead = Uint8Array.from(token);
  ahead[ahead.length - 1] = 2;
  await assert.rejects(feedOf(rows).read({ token: ahead }, NOW, undefined, NEVER), EXPIRED);
});

test('a reader that waits for changes learns that the store is closed', async (t) => {
  const store = await openDirectory(await temporaryFolder(t));
  const rows = await openOrders(store);
  const place = await feedOf(rows).now(NEVER);
  const { identity } = await rows.describe(NEVER);
  const waiting = feedOf(rows).read(place, { most: 1, waitMs: 60_000 }, identity, NEVER);
  await since(rows, place); // by now the other one waits
  await Promise.all([store.close(), assert.rejects(waiting, { code: 'store-unavailable' })]);
});

test('changes by another process reach a reader that waits', async (t) => {
  const directory = await temporaryFolder(t);
  const rows = await openOrders(await openFor(t, directory));
  const other = await openOrders(await openFor(t, directory));
  const place = await feedOf(rows).now(NEVER);
  const { identity } = await rows.describe(NEVER);
  const waiting = feedOf(rows).read(place, { most: 10, waitMs: 60_000 }, identity, NEVER);
  await since(rows, place); // by now the other one waits
  await write(other, ['from elsewhere']);
  const { keys } = await waiting;
  assert.deepEqual(keys.map(idIn), ['from elsewhere']);
});

test('a feed returns both ids of a row that another type of number replaced', async (t) => {
  const orders = await (await openFor(t, await temporaryFolder(t))).open(ORDERS);
  await write(orders, [new Int32(7)]);
  const place = await feedOf(orders).now(NEVER);
  await write(orders, [Decimal128.fromString('7.0')]);
  const { keys } = await feedOf(orders).read(place, NOW, undefined, NEVER);
  assert.deepEqual(
    keys.map((key) => BSON.EJSON.stringify(idIn(key), { relaxed: false })),
    ['{"$numberInt":"7"}', '{"$numberDecimal":"7.0"}'],
  );
});

test('a resource that is dropped is another collection to its readers, and leaves nothing in the log', async (t) => {
  const directory = await temporaryFolder(t);
  const store = await openFor(t, directory);
  const orders = await store.open(ORDERS);
  await write(orders, [1, 2]);
  const place = await feedOf(orders).now(NEVER);
  const { identity } = await orders.describe(NEVER);
  const waiting = (own: typeof identity) =>
    feedOf(orders).read(place, { most: 1, waitMs: 60_000 }, own, NEVER);
  const rejected = [
    assert.rejects(waiting(identity), { code: 'collection-replaced', status: 410 }),
    assert.rejects(waiting(undefined), EXPIRED),
  ];
  await (await store.open(ORDERS, 'make')).clear(NEVER);
  await Promise.all(rejected);
  await assert.rejects(feedOf(orders).read(place, NOW, undefined, NEVER), EXPIRED);
  assert.equal(changesIn(directory), 0);
  const present = await feedOf(orders).now(NEVER);
  await orders.clear(NEVER); // removes nothing
  await assert.rejects(since(orders, present), EXPIRED);
});

test('waiting readers share one look at the log, and cost none when no reader waits', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const log = { looks: 0, version: 'first' };
  const versionOf = (): string => {
    log.looks++;
    return log.version;
  };
  const watch = new LogWatch(() => true);
  const waiting = Array.from({ length: 1_000 }, () => watch.wait(versionOf, 'first', 60_000, ownSignal()));
  assert.equal(log.looks, 1_000);
  t.mock.timers.tick(150);
  assert.equal(log.looks, 1_003);
  log.version = 'second';
  t.mock.timers.tick(50);
  await Promise.all(waiting);
  watch.committed();
  await watch.wait(() => 'other', 'seen', 60_000, ownSignal());
  t.mock.timers.tick(60_000);
  await nextTurn();
  assert.equal(log.looks, 1_004);
  const last = watch.wait(versionOf, 'second', 1, ownSignal());
  t.mock.timers.tick(1);
  await last;
});

/** A signal without other listeners. */
function ownSignal(): AbortSignal {
  return new AbortController().signal;
}

test('a follower has every item that a process wrote which was killed, and what a next one writes', async (t) => {
  const directory = await temporaryFolder(t);
  const { items } = await openFor(t, directory);
  const follower = await Follower.begin(items, BY_ID, randomFrom(1));
  for (const [seed, batches, isKilled] of [
    [1, 1_000_000, true], // until it is killed
    [2, 3, false],
  ] as const) {
    const { child, ended } = startProgram(t, 'store/sqlite/sqlite-writer.ts', directory, seed, batches);
    let output = '';
    let steps = 0;
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    while (child.exitCode === null && child.signalCode === null) {
      await follower.step();
      if (output !== '' && ++steps === 40 && isKilled) child.kill('SIGKILL');
    }
    await ended;
    assert.equal(child.signalCode, isKilled ? 'SIGKILL' : null);
    await follower.finish();
    const { rows } = await readRows(items, BY_ID, {}, { rows: 1_000_000, bytes: PLENTY });
    assert.ok(rows.length > 0);
    assert.deepEqual([...follower.copy.keys()].sort(), rows.map(nameOf).sort());
    for (const row of rows) assert.ok(follower.copy.get(nameOf(row))?.equals(row));
  }
});

test('a log that several processes write and prune is within its limits', async (t) => {
  for (let seed = 1; seed <= 4; seed++) {
    const random = randomFrom(seed);
    const directory = await temporaryFolder(t);
    let now = 0;
    const changesTtlMs = 1 + below(random, 2_000);
    const mostChanges = 1 + below(random, 60);
    const options = { changesTtlMs, mostChanges, wallClock: () => now };
    const processes = [
      (await openFor(t, directory, options)).items,
      (await openFor(t, directory, options)).items,
    ];
    const { connection, sets, close } = openRaw(directory);
    for (let step = 0; step < 60; step++) {
      now += below(random, random() < 0.1 ? 3_000 : 50);
      const items = processes[below(random, 2)] ?? assert.fail();
      await write(
        items,
        Array.from({ length: 1 + below(random, 9) }, () => below(random, 15)),
      );
      const { number } = sets.get(ITEMS);
      const kept = connection.all(`select seq, at from l${number} order by seq`);
      const label = `seed ${seed}, step ${step}`;
      // A set of 15 rows may have twice as many changes.
      assert.ok(kept.length <= Math.max(mostChanges, 30) * SPARE, `${label}: ${kept.length} changes`);
      const old = kept.filter(({ at }) => now - Number(at) > changesTtlMs * SPARE);
      assert.deepEqual(old, [], label);
      const floor = Number(connection.get("select floor from sets where name = 'resource items'")?.floor);
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
  const directory = await temporaryFolder(t);
  let now = 0;
  const options = { changesTtlMs: 1_000, wallClock: () => now };
  const server = (await openFor(t, directory, options)).items;
  const importer = (await openFor(t, directory, options)).items;
  const part = feedOf(server).within?.(predicateOf({ where: [{ path: 'status', value: 'a' }], hide: [] }));
  assert.ok(part);
  const matching = async (place: Awaited<ReturnType<typeof part.now>>) => {
    const { keys, matchedBefore } = await part.read(place, { most: 100, waitMs: 0 }, undefined, NEVER);
    return keys
      .filter((key) => matchedBefore.has(Buffer.from(key).toString('latin1')))
      .map((key) => Number(idIn(key)));
  };
  await write(importer, [1, 2, 3], 'a');
  await write(importer, [3, 4], 'b');
  const place = await part.now(NEVER);
  assert.deepEqual(await matching(place), [], 'what came before is not known');
  await write(importer, [1], 'b');
  await importer.remove([makeBookmark({ _id: 2 })]);
  await write(importer, [3, 4, 5], 'a');
  assert.deepEqual(await matching(place), [1, 2]);

  now = 400; // a reader renews its wish
  await part.now(NEVER);
  now = 1_200;
  await write(importer, [3], 'b');
  const rows = openRaw(directory);
  const kept = () => Number(rows.connection.get(`select count(b) n from l${rows.sets.get(ITEMS).number}`)?.n);
  assert.ok(kept() > 0, 'it is kept as long as changes are');
  now = 3_000;
  await write(importer, [1], 'a');
  await nextTurn();
  assert.equal(kept(), 0, 'without readers rows are no longer kept, and old changes are removed');
  rows.close();
});
