import assert from 'node:assert/strict';
import { test } from 'node:test';
import { documentOf, rowsOf } from '../src/store/batch.ts';
import { keyOf, makeBookmark } from '../src/store/bookmark.ts';
import { BSON } from '../src/store/bson.ts';
import { filteredRows } from '../src/store/filtered-rows.ts';
import { USERS } from '../src/users/row.ts';
import { testSqlite } from './support/sqlite.ts';
import { below, randomFrom } from './support/random-collection.ts';
import { SEED } from './support/seed.ts';

const COUNT = 3_500;
const BY_ID = { sort: '_id', direction: 1 } as const;
const NEVER = new AbortController().signal;
const idOf = (n: number) => `u${String(n).padStart(4, '0')}`;

test(`filtered rows equal a reference, over any number of reads of the store (seed ${SEED})`, async (t) => {
  const { store, slots } = await testSqlite(t);
  const users = await store.records(USERS);
  const random = randomFrom(SEED);
  // Long stretches without a row that passes, and single ones.
  const own = Array.from({ length: COUNT }, (_, n) => (n % 1700 < 40 ? random() < 0.5 : random() < 0.002));
  const change = (n: number) =>
    users.change(idOf(n), () => BSON.serialize({ _id: idOf(n), own: own[n], text: 'x'.repeat(n % 50) }));
  await Promise.all(Array.from({ length: COUNT }, (_, n) => change(n)));
  const rows = filteredRows(users, slots, (row) => BSON.deserialize(row).own === true);
  const all = Array.from({ length: COUNT }, (_, n) => n).filter((n) => own[n]);
  assert.ok(all.length > 20);
  for (let round = 0; round < 60; round++) {
    const after = round % 3 === 0 ? below(random, COUNT) : undefined;
    const skip = after === undefined ? below(random, all.length + 2) : 0;
    const size = { rows: 1 + below(random, all.length), bytes: round % 4 === 0 ? 400 : 1e6 };
    const from = after === undefined ? { skip } : { after: makeBookmark({ _id: idOf(after) }) };
    const batch = await rows.read(BY_ID, from, size, NEVER);
    const rest = all.filter((n) => after === undefined || n > after).slice(skip);
    const got = [...rowsOf(batch)].map((row) => String(BSON.deserialize(row)._id));
    const at = JSON.stringify({ after, skip, size });
    assert.equal(batch.rows, got.length, at);
    assert.deepEqual(got, rest.slice(0, got.length).map(idOf), at);
    assert.equal(batch.more, got.length < rest.length, at);
    if (size.bytes > 400) assert.equal(got.length, Math.min(size.rows, rest.length), at);
    else assert.ok(got.length > 0 || rest.length === 0, at);
    assert.equal(batch.last && keyOf(batch.last)._id, got.at(-1) ?? null, at);
    batch.release();
  }
  const [mine = 0] = all;
  const found = await rows.get(makeBookmark({ _id: idOf(mine) }), NEVER);
  assert.equal(found && BSON.deserialize(documentOf(found))._id, idOf(mine));
  found?.release();
  const other = makeBookmark({ _id: idOf(own.indexOf(false)) });
  assert.equal(await rows.get(other, NEVER), null);
  assert.equal(slots.taken, 0);
});
