import assert from 'node:assert/strict';
import { numberRange } from '../support/store/number-range.ts';
import { bookmarkOf, keyOf, makeBookmark } from '../../src/store/bookmark.ts';
import type { Snapshot } from '../../src/store/collection.ts';
import { Double } from '../../src/store/values/bson.ts';
import type { From, OwnedCollection, Plan } from '../../src/store/store.ts';
import { expectedItems, inCategory, makeItem, makeItems } from '../support/store/items.ts';
import type { Item } from '../support/store/items.ts';
import { SEED } from '../support/seed.ts';
import { BY_ID, feedOf, isProblem, keysSince } from '../support/store/changes.ts';
import { below, randomFrom } from '../support/store/random-collection.ts';
import { NEVER, PLENTY, assertChain, assertRows, readRows, takeRows } from '../support/store/reading.ts';
import type { StoreTest } from '../support/store/open-store.ts';

const SIZE = { rows: 7, bytes: PLENTY };
const PLANS: readonly Plan[] = [
  { sort: '_id', direction: 1 },
  { sort: '_id', direction: -1 },
  { sort: '_id', direction: -1, ...inCategory('books') },
  { sort: 'price', direction: 1, ...inCategory('b'), range: numberRange(undefined, '4') },
  { sort: 'price', direction: -1 },
];

/** Reading the rows of a point in time. */
export function snapshotContract(test: StoreTest): void {
  test('rows at a point in time are as they were, whatever was written later, or the store has no points in time', async (opened) => {
    const { items } = opened.store;
    const before = makeItems(64);
    await insert(items, before, 'fail');
    const { now: at = null } = await items.describe(NEVER, { now: true });
    if (at === null) return assertUnsupported(items);

    const changed = before.filter((_, n) => n % 2 === 0);
    await insert(
      items,
      changed.map(({ id, category }) => makeItem(id, category, new Double(2.75), 'changed')),
      'replace',
    );
    for (const { id } of before.filter((_, n) => n % 4 === 1)) await opened.remove(id);
    await insert(items, [makeItem('another', 'b', new Double(3))], 'fail');
    for (const plan of PLANS) {
      const expected = expectedItems(before, plan);
      await assertChain(items, { ...plan, at }, {}, SIZE, expected);
      const middle = expected[5];
      assert.ok(middle);
      const after = bookmarkOf(middle.bytes, plan);
      await assertChain(items, { ...plan, at }, { after }, SIZE, expected.slice(6));
    }
    const { now = null } = await items.describe(NEVER, { now: true });
    assert.ok(now !== null && now > at, 'time advances');
    const { rows } = await readRows(items, { sort: '_id', direction: 1, at: now }, {}, { ...SIZE, rows: 99 });
    assert.equal(rows.length, 64 - 16 + 1, 'the present has all acknowledged writes');
    assert.equal(opened.slots.taken, 0);
  });

  test('a time that is in the future or gone has its own error', async (opened) => {
    const { items } = opened.store;
    const { now: at = null } = await items.describe(NEVER, { now: true });
    if (at === null) return assertUnsupported(items);
    const readAt = (time: bigint) => items.read({ sort: 'price', direction: 1, at: time }, {}, SIZE, NEVER);
    const hour = 3600n << 32n;
    await assert.rejects(readAt(at + hour), { code: 'invalid-parameter', parameter: 'at' });
    await assert.rejects(readAt(2n ** 64n - 1n), { code: 'invalid-parameter' });
    await assert.rejects(readAt(0n), { code: 'invalid-parameter' });
    await assert.rejects(readAt(at - hour), { code: 'snapshot-expired', status: 410 });
    assert.equal(opened.slots.taken, 0);
  });
}

/** A state of all rows, and the changes behind it. */
export function stateContract(test: StoreTest): void {
  test('a snapshot has the rows of its time whatever is written later, and its place every later change', async (opened) => {
    const { items } = opened.store;
    const random = randomFrom(SEED);
    const model = new Map<string, Item>();
    const write = async (): Promise<readonly string[]> => {
      const ids = Array.from({ length: 1 + below(random, 9) }, () => `i${below(random, 60)}`);
      const distinct = [...new Set(ids)];
      if (random() < 0.3) {
        await items.remove(distinct.map((_id) => makeBookmark({ _id })));
        return distinct.filter((id) => model.delete(id));
      }
      const rows = distinct.map((id) => makeItem(id, 'b', new Double(random()), `changed ${random()}`));
      await insert(items, rows, 'replace');
      rows.forEach((row, n) => model.set(distinct[n] ?? '', row));
      return distinct;
    };
    for (let round = 0; round < 8; round++) {
      await write();
      const expected = [...model].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
      const snapshot = await snapshotOf(items);
      const written = new Set<string>();
      for (const id of await write()) written.add(id);
      for (let from: From = {}, at = 0, more = true; more;) {
        const size = { rows: 1 + below(random, 20), bytes: PLENTY };
        const batch = await snapshot.rows.read(BY_ID, from, size, NEVER);
        ({ more } = batch);
        if (batch.last) from = { after: batch.last };
        if (!more) await batch.confirm(NEVER);
        const rows = takeRows(batch);
        assertRows(rows, expected.slice(at, (at += rows.length)));
        assert.equal(more, at < expected.length);
        for (const id of await write()) written.add(id);
      }
      const { keys } = await keysSince(feedOf(items), snapshot.place);
      assert.deepEqual(
        new Set(keys.map((key) => keyOf(key)._id)),
        written,
        'exactly the rows that were written behind it',
      );
      snapshot.release();
      snapshot.release();
    }
    assert.equal(opened.slots.taken, 0);
  });

  test('a snapshot of a collection that is emptied has its rows, or says that they are replaced', async (opened) => {
    const { items } = opened.store;
    const before = makeItems(20);
    await insert(items, before, 'fail');
    const snapshot = await snapshotOf(items);
    await items.clear(NEVER);
    await insert(items, [makeItem('another', 'b', new Double(3))], 'fail');
    try {
      const batch = await snapshot.rows.read(BY_ID, {}, { rows: 99, bytes: PLENTY }, NEVER);
      assertRows(takeRows(batch), expectedItems(before, BY_ID));
    } catch (error) {
      assert.ok(isProblem('collection-replaced')(error));
    }
    const { identity } = await items.describe(NEVER);
    assert.notEqual(identity, snapshot.identity, 'its identity says so, too');
    snapshot.release();
    assert.equal(opened.slots.taken, 0);
  });
}

async function snapshotOf({ snapshot }: OwnedCollection): Promise<Snapshot> {
  assert.ok(snapshot, 'these rows have snapshots');
  return snapshot(NEVER);
}

async function assertUnsupported(items: OwnedCollection): Promise<void> {
  const read = items.read({ sort: '_id', direction: 1, at: 1n << 32n }, {}, SIZE, NEVER);
  await assert.rejects(read, { code: 'snapshot-unsupported', status: 400 });
}

async function insert(
  store: OwnedCollection,
  items: readonly Item[],
  how: 'fail' | 'replace',
): Promise<void> {
  const rows = items.map(({ bytes }) => bytes);
  assert.deepEqual(await store.insert(rows, how), { written: items.length, skipped: 0, refused: [] });
}
