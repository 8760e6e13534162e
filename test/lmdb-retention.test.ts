import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { BSON } from '../src/store/bson.ts';
import { Commits } from '../src/store/lmdb/commits.ts';
import { FairScheduler } from '../src/store/lmdb/fair-scheduler.ts';
import { LmdbFeed } from '../src/store/lmdb/feed/feed.ts';
import { ChangeLog, ITEMS } from '../src/store/lmdb/feed/log.ts';
import { EPOCH_KEY } from '../src/store/lmdb/feed/log-keys.ts';
import { walkLog } from '../src/store/lmdb/feed/log-walk.ts';
import { headOf } from '../src/store/lmdb/feed/record.ts';
import { LogWatch } from '../src/store/lmdb/feed/watch.ts';
import { openFile, tablesOf } from '../src/store/lmdb/file.ts';
import { LmdbWriter } from '../src/store/lmdb/write.ts';
import { Slots } from '../src/store/slots.ts';
import { join } from 'node:path';
import { testDirectory } from './support/lmdb.ts';
import { below, randomFrom } from './support/random-collection.ts';
import { NEVER } from './support/reading.ts';

const GATE = { isUnderWay: false, untilFree: () => Promise.resolve() };
const SPARE = 1 + 1 / 1_024;

/** The log of items in a file, as one of several processes has it. */
function openLog(
  t: TestContext,
  directory: string,
  limits: { ttlMs: number; mostIds?: number; now: () => number },
) {
  const file = openFile(join(directory, 'items.mdb'));
  t.after(() => file.close());
  const tables = tablesOf(file);
  const commits = new Commits(file, {
    check: () => undefined,
    faultOf: (error) => Promise.resolve(error),
    onLost: (failure) => assert.fail(failure),
  });
  const log = new ChangeLog(tables, limits);
  const writer = new LmdbWriter(tables, commits, GATE, log);
  const records = () => {
    file.resetReadTxn();
    const found: { readonly end: number; readonly time: number; readonly count: number }[] = [];
    walkLog(tables, ITEMS, 0, (end, record) => {
      found.push({ end, ...headOf(record) });
      return true;
    });
    return found;
  };
  const write = (...ids: readonly number[]) =>
    writer.insert(
      ids.map((_id) => BSON.serialize({ _id, category: 'a', price: 1 })),
      'replace',
    );
  return { log, tables, commits, records, write, begin: () => file.resetReadTxn() };
}

test('writes of single rows look at the log only when there is something to remove, and then remove more', async (t) => {
  let now = 0;
  const { tables, records, write } = openLog(t, await testDirectory(t), {
    ttlMs: 1_024_000,
    mostIds: 5_000,
    now: () => now,
  });
  const { changes } = tables;
  const getRange = changes.getRange.bind(changes);
  let looks = 0;
  changes.getRange = (options) => {
    looks++;
    return getRange(options);
  };
  for (let n = 0; n < 200; n++) await write(n % 7);
  assert.equal(looks, 1, 'the first one');
  now = 1_024_000 + 1_001; // everything is older than it may be, and each write adds what will be
  looks = 0;
  for (let n = 0; n < 200; n++) await write(n % 7);
  assert.ok(looks <= 9, `${looks} looks for 200 records`);
  looks = 0;
  assert.equal(records().length, 200);
});

test('a hundred readers that wait read the log once for each write that wakes them', async (t) => {
  const { log, tables, commits, write, begin } = openLog(t, await testDirectory(t), {
    ttlMs: 1_024_000,
    now: () => 0,
  });
  await commits.run(() => tables.meta.putSync(EPOCH_KEY, Buffer.alloc(8)));
  await write(0);
  const watch = new LogWatch();
  const present = () => {
    begin();
    return { number: ITEMS };
  };
  const nothing = () => undefined;
  const set = { rows: tables.items, present, assertWhole: nothing, keyOfId: () => null, checkPlan: nothing };
  const feed = new LmdbFeed(set, {
    ...{ tables, log, commits, watch, slots: new Slots(), scheduler: new FairScheduler() },
    now: () => performance.now(),
    told: (work) => work,
  });
  let place = await feed.now(NEVER);
  let reads = 0;
  const read = log.read.bind(log);
  log.read = (...call) => {
    reads++;
    return read(...call);
  };
  for (const [n, most] of [250, 1_000, 2].entries()) {
    reads = 0;
    const from = place;
    const waiting = Array.from({ length: 100 }, (_, reader) =>
      feed.read(from, { most: most + (reader % 2), waitMs: 60_000 }, undefined, new AbortController().signal),
    );
    await feed.read(from, { most, waitMs: 0 }, undefined, NEVER); // by now they have all looked
    await write(2 * n, 2 * n + 1);
    watch.committed();
    for (const { keys, next } of await Promise.all(waiting)) {
      assert.equal(keys.length, 2);
      place = next;
    }
    assert.ok(reads <= 2, `${reads} reads: before the write, and after it`);
  }
});

test('a log that several processes write and prune is within its limits, and counts its changes right', async (t) => {
  for (let seed = 1; seed <= 10; seed++) {
    const random = randomFrom(seed);
    const directory = await testDirectory(t);
    let now = 0;
    const limits = { ttlMs: 1 + below(random, 2_000), mostIds: 1 + below(random, 60), now: () => now };
    const processes = [openLog(t, directory, limits), openLog(t, directory, limits)];
    for (let step = 0; step < 60; step++) {
      now += below(random, oneIn(random, 10) ? 3_000 : 50);
      const { log, commits, records, write } = processes[below(random, 2)] ?? assert.fail();
      const before = records().length;
      const isWrite = !oneIn(random, 10);
      if (isWrite) await write(...Array.from({ length: 1 + below(random, 9) }, () => below(random, 15)));
      else if (oneIn(random, 2)) await commits.run(() => log.raiseFloor(ITEMS));
      else
        await assert.rejects(
          commits.run(() => {
            log.prune(ITEMS, 0);
            throw new Error('undone');
          }),
          /undone/,
        );
      const { floor, ids, last } = log.state(ITEMS);
      const kept = records();
      const told = `seed ${seed}, step ${step}`;
      assert.equal(
        kept.reduce((sum, { count }) => sum + count, 0),
        ids,
        told,
      );
      // A set of 15 rows may have twice as many changes. What does not write does not remove either.
      assert.ok(ids <= Math.max(limits.mostIds, 30) * SPARE, `${told}: ${ids} ids`);
      const old = kept.filter(({ time, end }) => end <= floor || now - time > limits.ttlMs * SPARE);
      assert.ok(!isWrite || old.length <= Math.max(0, before - 32), `${told}: ${old.length} old records`);
      assert.ok(floor <= last && (kept.at(-1)?.end ?? floor) <= last, told);
    }
  }
});

const oneIn = (random: () => number, times: number) => random() < 1 / times;
