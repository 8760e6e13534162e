import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AmongCollection } from '../../../src/store/among/among-collection.ts';
import { batchOf, rowsOf, type ReadBatch } from '../../../src/store/batch.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import type { Collection, Plan } from '../../../src/store/store.ts';
import { Slots } from '../../../src/store/turns/slots.ts';

const SIZE = { rows: 10, bytes: 1024 * 1024 };
const NEVER = new AbortController().signal;
const PLAN: Plan = { sort: '_id', direction: 1, among: { path: 's', values: ['a', 'none', 'b'] } };

/** Two rows of `a`, none of `none`, and one of `b`. Notes the plans that were read, and the values that were proved. */
function collectionIn(slots: Slots, failing?: string) {
  const read: Plan[] = [];
  const proved: unknown[] = [];
  const rows: Partial<Collection> = {
    read: (plan) => {
      read.push(plan);
      const value = plan.equals?.find(({ path }) => path === 's')?.value;
      if (value === failing) return Promise.reject(new Error('the store has failed'));
      const ids = value === 'a' ? [1, 2] : value === 'b' ? [3] : [];
      const documents = ids.map((_id) => BSON.serialize({ _id, s: value }));
      const slot = slots.take(64);
      const none = {
        slot,
        start: 0,
        length: 0,
        rows: 0,
        last: null,
        more: false,
        release: () => slot.release(),
      };
      const batch = documents.length > 0 ? batchOf(slots, documents, plan) : none;
      if (documents.length > 0) slot.release();
      const confirm: ReadBatch['confirm'] = () => {
        proved.push(value);
        return Promise.resolve();
      };
      return Promise.resolve({ ...batch, asOf: BigInt(read.length), identity: 'i', confirm });
    },
  };
  return { collection: new AmongCollection(rows as Collection, slots), read, proved };
}

test('a batch of several values is one memory, and is proved when each value is, also one without rows', async () => {
  const slots = new Slots();
  const { collection, read, proved } = collectionIn(slots);
  const batch = await collection.read(PLAN, {}, SIZE, NEVER);
  assert.deepEqual(
    [...rowsOf(batch)].map((row) => BSON.deserialize(row)._id as unknown),
    [1, 2, 3],
  );
  assert.deepEqual([batch.rows, batch.more, batch.asOf, slots.taken], [3, false, 1n, 1]);
  assert.deepEqual(batch.last && BSON.deserialize(batch.last), { _id: 3, s: 'b' });
  assert.deepEqual(
    read.map(({ since, identity }) => [since, identity]),
    [
      [undefined, undefined],
      [1n, 'i'],
      [1n, 'i'],
    ],
  );
  await batch.confirm(NEVER);
  assert.deepEqual(proved, ['a', 'none', 'b']);
  batch.release();
  assert.equal(slots.taken, 0);
});

test('a read goes on at the value of its bookmark, and keeps no memory when a later value fails', async () => {
  const slots = new Slots();
  const { collection, read } = collectionIn(slots);
  const after = makeBookmark({ _id: 9, s: 'none' });
  const batch = await collection.read(PLAN, { after }, SIZE, NEVER);
  assert.deepEqual(
    read.map(({ equals }) => equals?.[0]?.value),
    ['none', 'b'],
  );
  batch.release();
  await assert.rejects(collectionIn(slots, 'b').collection.read(PLAN, {}, SIZE, NEVER), /has failed/);
  assert.equal(slots.taken, 0);
});
