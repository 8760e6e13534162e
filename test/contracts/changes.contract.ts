import assert from 'node:assert/strict';
import { BSON, Decimal128, Double, Int32, Long } from '../../src/store/values/bson.ts';
import { makeBookmark } from '../../src/store/bookmark.ts';
import type { ChangeFeed, FeedPlace, ScopeLog } from '../../src/store/change-feed.ts';
import { ScopedCollection } from '../../src/store/scope/scoped-collection.ts';
import { predicateOf } from '../../src/store/scope/predicate.ts';
import { ScopedFeed } from '../../src/store/scope/scoped-feed.ts';
import type { Slots } from '../../src/store/turns/slots.ts';
import type { Plan, OwnedCollection } from '../../src/store/store.ts';
import { lookUps } from '../../src/store/turns/readers.ts';
import { Follower, idIn, nameOf } from '../support/store/following.ts';
import { BY_ID, feedOf, keysSince, lookUp } from '../support/store/changes.ts';
import { below, oneOf, randomFrom } from '../support/store/random-collection.ts';
import { NEVER, PLENTY, readRows } from '../support/store/reading.ts';
import { SEED } from '../support/seed.ts';
import { compareValues } from '../../src/store/values/order.ts';
import { readRow } from '../../src/store/turns/read-row.ts';
import type { ContractTest } from '../support/tests-with.ts';

/** An empty set of rows that has a change feed. */
export interface OpenFeed {
  readonly rows: OwnedCollection;
  readonly slots: Slots;
  /** A field of strings with an index, so that plans can name its value. */
  readonly field: string;
  readonly values: readonly string[];
  /** Ids of every type that the set takes. Some are numbers of the same value and of other types. */
  readonly ids: readonly unknown[];
}

/** Longer than any test takes. */
const LONG_MS = 60_000;
/** The steps of random writers and followers. */
const STEPS = process.env.LONG ? 10_000 : 120;
/** Numbers of three values, each of every type. */
const EQUAL = [5, 6, 7].flatMap((n) => [
  ...[new Int32(n), new Double(n), Long.fromNumber(n), Decimal128.fromString(`${n}.0`)],
]);

/** The ids as text, sorted: a feed may return keys of one read in any order. */
function shown(ids: readonly unknown[]): string[] {
  return ids.map((id) => BSON.EJSON.stringify({ id }, { relaxed: false })).sort();
}

class Opened {
  readonly rows: OwnedCollection;
  readonly feed: ChangeFeed;
  readonly #field: string;

  constructor({ rows, field }: OpenFeed) {
    this.rows = rows;
    this.feed = feedOf(rows);
    this.#field = field;
  }

  write(ids: readonly unknown[], value = 'a', onConflict: 'replace' | 'skip' | 'fail' = 'replace') {
    const rows = ids.map((_id) => BSON.serialize({ _id, [this.#field]: value, price: 1 }));
    return this.rows.insert(rows, onConflict);
  }

  remove(ids: readonly unknown[]): Promise<number> {
    return this.rows.remove(ids.map((_id) => makeBookmark({ _id })));
  }

  /** The keys after a place, without waiting. */
  async since(place: FeedPlace) {
    const { identity } = await this.rows.describe(NEVER);
    const { keys, next, isUpToDate } = await this.feed.read(
      place,
      { most: 1_000, waitMs: 0 },
      identity,
      NEVER,
    );
    return { ids: shown(keys.map(idIn)), next, isUpToDate };
  }
}

/** Every promise of src/store/change-feed.ts, tested on one implementation. */
export function changeFeedContract(test: ContractTest<OpenFeed>): void {
  const testOpened = (title: string, body: (set: Opened, opened: OpenFeed) => Promise<void>) =>
    test(title, async (opened) => {
      await body(new Opened(opened), opened);
      assert.equal(opened.slots.taken, 0, 'every slot was released');
    });

  testOpened(
    'a feed returns rows inserted, replaced or removed after a place, and none from before it',
    async (set) => {
      await set.write(['before', 'changed', 'gone']);
      const place = await set.feed.now(NEVER);
      assert.deepEqual((await set.since(place)).ids, []);
      await set.write(['new']);
      await set.write(['changed'], 'b');
      assert.equal(await set.remove(['gone', 'never there']), 1);
      const { ids, next, isUpToDate } = await set.since(place);
      assert.deepEqual([ids, isUpToDate], [shown(['new', 'changed', 'gone']), true]);
      assert.deepEqual((await set.since(next)).ids, []);
      assert.deepEqual((await set.since(place)).ids, ids, 'a place can be read from again');
    },
  );

  testOpened(
    'a feed returns a row that changed often once, from any place between its changes',
    async (set) => {
      const places = [await set.feed.now(NEVER)];
      for (const value of ['a', 'b', 'c']) {
        await set.write(['often', 'other'], value);
        places.push(await set.feed.now(NEVER));
      }
      await set.remove(['often']);
      await set.write(['often'], 'd');
      for (const place of places.slice(0, 3))
        assert.deepEqual((await set.since(place)).ids, shown(['often', 'other']));
      assert.deepEqual((await set.since(places[3] ?? assert.fail())).ids, shown(['often']));
    },
  );

  testOpened('pieces of any size return every key, and the last one is up to date', async (set, { ids }) => {
    const place = await set.feed.now(NEVER);
    const written = Array.from({ length: 40 }, (_, n) => `row ${n}`);
    for (let at = 0; at < 40; at += 8) await set.write(written.slice(at, at + 8));
    await set.remove(written.slice(0, 5));
    await set.write(ids.slice(-5));
    for (const most of [1, 2, 7, 1_000]) {
      const { keys, place: next, longest } = await keysSince(set.feed, place, most);
      assert.ok(longest <= most, `${longest} keys, and ${most} is the limit`);
      assert.deepEqual([...new Set(shown(keys.map(idIn)))], shown([...written, ...ids.slice(-5)]));
      // The place itself may move: writes of other collections move it, too.
      assert.deepEqual((await keysSince(set.feed, next, most)).keys, []);
    }
  });

  testOpened('a feed does not return a row that a write left alone', async (set) => {
    await set.write([1, 2]);
    const place = await set.feed.now(NEVER);
    assert.equal((await set.write([1, 3], 'b', 'skip')).skipped, 1);
    assert.equal((await set.write([2, 4], 'b', 'fail')).refused.length, 1);
    assert.deepEqual((await set.since(place)).ids, shown([3, 4]));
  });

  testOpened('a feed does not return a row that was replaced by the same bytes', async (set) => {
    await set.write(['same', 'other']);
    const place = await set.feed.now(NEVER);
    const { written } = await set.write(['same', 'other', 'new']);
    assert.equal(written, 3);
    assert.deepEqual((await set.since(place)).ids, shown(['new']));
    await set.write(['same', 'other'], 'b');
    assert.deepEqual((await set.since(place)).ids, shown(['same', 'other', 'new']));
  });

  testOpened(
    'a read that waits gets the first change, and without one an up-to-date answer in the end',
    async (set) => {
      const from = await set.feed.now(NEVER);
      const { identity } = await set.rows.describe(NEVER);
      const waiting = set.feed.read(from, { most: 10, waitMs: LONG_MS }, identity, NEVER);
      await set.write(['first']);
      const { keys, next } = await waiting;
      assert.deepEqual(shown(keys.map(idIn)), shown(['first']));
      let place = next;
      for (let isUpToDate = false; !isUpToDate;) {
        const none = await set.feed.read(place, { most: 10, waitMs: 30 }, identity, NEVER);
        assert.deepEqual(none.keys, []);
        ({ next: place, isUpToDate } = none);
      }
      await set.write(['second']);
      assert.deepEqual((await set.since(place)).ids, shown(['second']));
    },
  );

  testOpened('an aborted call rejects with the reason of its signal, also while it waits', async (set) => {
    const place = await set.feed.now(NEVER);
    const reason = new Error('enough');
    const aborted = AbortSignal.abort(reason);
    const size = { most: 1, waitMs: LONG_MS };
    await assert.rejects(set.feed.now(aborted), reason);
    await assert.rejects(set.feed.read(place, size, undefined, aborted), reason);
    const controller = new AbortController();
    const waiting = assert.rejects(set.feed.read(place, size, undefined, controller.signal), reason);
    await set.since(place); // by now the first one waits
    controller.abort(reason);
    await waiting;
  });

  testOpened('a place of another kind of store is an invalid cursor', async (set) => {
    for (const token of [new Uint8Array(0), Buffer.from('no place'), Buffer.alloc(21, 0xff)])
      await assert.rejects(set.feed.read({ token }, { most: 1, waitMs: 0 }, undefined, NEVER), {
        code: 'invalid-cursor',
      });
  });

  testOpened('reads and look-ups of another collection reject', async (set) => {
    if ((await set.rows.describe(NEVER)).identity === undefined) return;
    const place = await set.feed.now(NEVER);
    const identity = '0123456789abcdef0123456789abcdef';
    const replaced = { code: 'collection-replaced' };
    await assert.rejects(set.feed.read(place, { most: 1, waitMs: 0 }, identity, NEVER), replaced);
    await assert.rejects(lookUp(set.feed, [makeBookmark({ _id: 1 })], { ...BY_ID, identity }), replaced);
  });

  testOpened(
    'a look-up returns every row that is there and fits, each once, in batches',
    async (set, { field }) => {
      const ids = Array.from({ length: 700 }, (_, n) => new Int32(n));
      await set.write(ids.slice(0, 300));
      await set.write(ids.slice(300, 600), 'b');
      const keys = ids.map((_id) => makeBookmark({ _id }));
      for (const rows of [1_000, 101, 7]) {
        const all = await lookUp(set.feed, [...keys, ...keys.slice(0, 9)], BY_ID, { rows, bytes: PLENTY });
        assert.deepEqual(shown(all.map(idIn)), shown(ids.slice(0, 600)));
        const some = await lookUp(
          set.feed,
          keys,
          { ...BY_ID, equals: [{ path: field, value: 'b' }] },
          { rows, bytes: PLENTY },
        );
        assert.deepEqual(shown(some.map(idIn)), shown(ids.slice(300, 600)));
      }
      assert.deepEqual(await lookUp(set.feed, keys.slice(600), BY_ID), []);
      assert.deepEqual(await lookUp(set.feed, [], BY_ID), []);
    },
  );

  testOpened('large rows come in batches of bounded size', async (set, { field }) => {
    const ids = Array.from({ length: 12 }, (_, n) => new Int32(n));
    const note = 'x'.repeat(100_000);
    await set.rows.insert(
      ids.map((_id) => BSON.serialize({ _id, [field]: 'a', price: 1, note })),
      'fail',
    );
    const keys = ids.map((_id) => makeBookmark({ _id }));
    let rows = 0;
    const size = { rows: 1_000, bytes: 250_000 };
    const found = lookUps(keys, BY_ID, (rest, plan) => set.feed.lookUp(rest, plan, size, NEVER));
    for await (const batch of found) {
      assert.ok(batch.rows >= 1 && batch.rows <= 3, `${batch.rows} rows`);
      rows += batch.rows;
      batch.release();
    }
    assert.equal(rows, ids.length);
  });

  testOpened(
    'a feed returns a key with its exact type, and a look-up finds the row of an equal number',
    async (set, { ids }) => {
      const place = await set.feed.now(NEVER);
      const types = [new Int32(7), new Double(7), Long.fromNumber(7), Decimal128.fromString('7.0')];
      const taken = types.filter((type) => ids.some((id) => id?.constructor === type.constructor));
      for (const id of taken) {
        await set.remove([new Int32(7)]);
        await set.write([id]);
      }
      const { ids: returned } = await set.since(place);
      assert.deepEqual(returned, shown(taken));
      const rows = await lookUp(
        set.feed,
        taken.map((_id) => makeBookmark({ _id })),
        BY_ID,
      );
      assert.deepEqual(rows.map(nameOf), [nameOf(makeBookmark({ _id: taken.at(-1) }))]);
    },
  );

  testOpened(
    'a scope has the row that a replacement moves into it or out of it, of whatever type the number of its id becomes',
    async (set, opened) => {
      const { ids, values } = opened;
      const scope = scopeOf(opened);
      const feed = feedOf(scope);
      const types = EQUAL.slice(0, 4).filter((one) => ids.some((id) => id?.constructor === one.constructor));
      for (const [n, before] of types.entries())
        for (const after of types) {
          await set.remove([before]);
          await set.write([before], values[1]);
          const place = await feed.now(NEVER);
          await set.write([after], values[0]);
          const { keys, place: inside } = await keysSince(feed, place, 1 + n);
          const found = await lookUp(feed, keys);
          assert.deepEqual(shown(found.map(idIn)), shown([after]), `${shown([before])[0]} became it`);
          await set.write([before], values[1]);
          const { keys: left } = await keysSince(feed, inside, 1 + n);
          assert.ok(shown(left.map(idIn)).includes(shown([after])[0] ?? ''), 'the key that is gone');
          assert.deepEqual(await lookUp(feed, left), []);
        }
    },
  );

  testOpened(
    'a row that comes into a scope is read once, and is sent as it was when that was decided',
    async (set, opened) => {
      const { values, field } = opened;
      const [own, other] = values;
      const { log, read } = countedLog(set.feed, opened);
      const feed = new ScopedFeed(log, (plan) => ({
        ...plan,
        equals: [{ path: field, value: own }, ...(plan.equals ?? [])],
      }));
      await set.write(['was here', 'stays out'], other);
      const place = await feed.now(NEVER);
      await set.write(['was here', 'new'], own);
      await set.write(['stays out'], other);
      const { keys, found, next } = await feed.read(place, { most: 10, waitMs: 0 }, undefined, NEVER);
      assert.deepEqual([shown(keys.map(idIn)), found?.size], [shown(['was here', 'new']), 2]);
      await set.write(['new'], other); // it leaves the scope before it is sent
      const plan = next.seen === undefined ? BY_ID : { ...BY_ID, since: next.seen };
      const few = { rows: 1_000, bytes: PLENTY };
      const sent = await lookUp(feed, keys, plan, few, found);
      assert.deepEqual(sent.map((row) => [idIn(row), BSON.deserialize(row)[field] as unknown]).sort(), [
        ['new', own],
        ['was here', own],
      ]);
      assert.equal(read.rows, 2, 'each was read once');
      assert.deepEqual(shown((await lookUp(feed, keys, plan, few, found)).map(idIn)), shown(['was here']));
      const { keys: left } = await feed.read(next, { most: 10, waitMs: 0 }, undefined, NEVER);
      assert.deepEqual(shown(left.map(idIn)), shown(['new']), 'what a later change says');
    },
  );

  testOpened(
    'a row that was read for a scope must also have the values that a reader asks for',
    async (set, opened) => {
      const feed = feedOf(scopeOf(opened));
      const place = await feed.now(NEVER);
      await set.write(['a'], opened.values[0]);
      const read = () => feed.read(place, { most: 10, waitMs: 0 }, undefined, NEVER);
      for (const [price, count] of [
        [1, 1],
        [2, 0],
      ] as const) {
        const { keys, found } = await read();
        const plan: Plan = { ...BY_ID, equals: [{ path: 'price', value: price }] };
        const rows = await lookUp(feed, keys, plan, { rows: 1_000, bytes: PLENTY }, found);
        assert.deepEqual([keys.length, rows.length], [1, count]);
      }
    },
  );

  testOpened('rows of many bytes that come into a scope are left to their turn', async (_, opened) => {
    const { field, values, rows } = opened;
    const feed = feedOf(scopeOf(opened));
    const place = await feed.now(NEVER);
    const note = 'x'.repeat(20_000);
    const ids = [1, 2, 3, 4, 5].map((n) => new Int32(n));
    await rows.insert(
      ids.map((_id) => BSON.serialize({ _id, [field]: values[0], price: 1, note })),
      'fail',
    );
    const { keys, found } = await feed.read(place, { most: 10, waitMs: 0 }, undefined, NEVER);
    assert.deepEqual([keys.length, found?.size], [5, 3]);
    const all = await lookUp(feed, keys, BY_ID, { rows: 2, bytes: PLENTY }, found);
    assert.deepEqual(shown(all.map(idIn)), shown(ids));
  });

  for (const [what, narrowed] of [
    ['the set', ({ rows }: OpenFeed) => rows],
    ['the scope of the set that a key opens', scopeOf],
  ] as const)
    testOpened(
      `a copy that is walked beside the changes is ${what} in the end, whatever was written meanwhile`,
      async (set, opened) => {
        const { ids, values } = opened;
        const rows = narrowed(opened);
        const random = randomFrom(SEED);
        const present = async () => {
          const { rows: all } = await readRows(rows, BY_ID, {}, { rows: 1_000, bytes: PLENTY });
          return new Map(all.map((row) => [nameOf(row), row]));
        };
        const numbers = EQUAL.filter((number) => ids.some((id) => id?.constructor === number.constructor));
        const write = async () => {
          const from = random() < 0.7 ? numbers : ids;
          const some = Array.from({ length: 1 + below(random, 8) }, () => oneOf(random, from));
          const chosen = some.filter((id, n) => some.findIndex((one) => compareValues(one, id) === 0) === n);
          if (random() < 0.25) await set.remove(chosen);
          if (random() < 0.7) await set.write(chosen, oneOf(random, values)); // also 7 in place of 7.0
        };
        const followers: Follower[] = [];
        for (let step = 0; step < STEPS; step++) {
          if (followers.length < 9) followers.push(await Follower.begin(rows, BY_ID, random));
          const follower = oneOf(random, followers);
          if (random() < 0.5) await Promise.all([write(), follower.step()]);
          else await write();
          if (random() < 0.8) continue;
          await follower.finish();
          assert.deepEqual(sorted(follower.copy), sorted(await present()), `seed ${SEED}, step ${step}`);
          followers.splice(followers.indexOf(follower), 1);
        }
      },
    );

  testOpened(
    'removed rows are gone from rows, counts and indexes, and can be inserted again',
    async (set, { field, ids }) => {
      await set.write(ids.slice(0, 1));
      await set.write(['a', 'b', 'c']);
      assert.equal(await set.remove(['a', 'a', 'b', 'never there']), 2);
      assert.equal((await set.rows.count(BY_ID, 'exact', NEVER)).rows, 2);
      assert.equal(await readRow(set.rows, makeBookmark({ _id: 'a' }), NEVER), null);
      const plan: Plan = { ...BY_ID, equals: [{ path: field, value: 'a' }] };
      assert.equal((await set.rows.count(plan, 'exact', NEVER)).rows, 2);
      assert.equal((await set.write(['a'], 'a', 'fail')).written, 1);
      assert.equal((await set.rows.count(plan, 'exact', NEVER)).rows, 3);
      assert.equal(await set.remove([]), 0);
    },
  );
}

/** The log for a scope, and how many rows were read from it. */
function countedLog(feed: ChangeFeed, { field, values: [value] }: OpenFeed) {
  const scope = predicateOf({ where: [{ path: field, value }], hide: [] });
  const log = feed.within?.(scope) ?? assert.fail('the feed has scopes');
  const read = { rows: 0 };
  const lookUp: ChangeFeed['lookUp'] = async (...call) => {
    const found = await log.lookUp(...call);
    read.rows += found.batch?.rows ?? 0;
    return found;
  };
  const counted: ScopeLog = {
    now: (...call) => log.now(...call),
    at: (...call) => log.at(...call),
    reaches: (...call) => log.reaches(...call),
    read: (...call) => log.read(...call),
    refusal: (...call) => log.refusal(...call),
    slots: log.slots,
    lookUp,
  };
  return { log: counted, read };
}

/** The rows with the first value, as a key with `where` opens them. */
function scopeOf({ rows, field, values: [value] }: OpenFeed): ScopedCollection {
  return new ScopedCollection(rows, { where: [{ path: field, value }], hide: [] }, async (_, __, signal) => {
    const { indexes } = await rows.describe(signal);
    return indexes.find(({ keys }) => keys[0]?.path === field && keys[1]?.path === '_id') ?? assert.fail();
  });
}

/** The rows of a copy, as text. */
function sorted(rows: ReadonlyMap<string, Buffer>): string[] {
  return [...rows].map(([name, row]) => `${name} ${row.toString('hex')}`).sort();
}
