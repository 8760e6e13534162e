/** Rows that lie in the order of their keys are read from the last to the first, and come in their order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON } from '../../../../src/store/values/bson.ts';
import { Slots } from '../../../../src/store/turns/slots.ts';
import { HEAD_BYTES, rowReversalIn, storedRow } from '../../../../src/store/sqlite/file/checked-rows.ts';
import { rowsTable } from '../../../../src/store/sqlite/file/layout.ts';
import { temporaryFolder } from '../../../support/directory.ts';
import { BY_ID } from '../../../support/store/changes.ts';
import { PLENTY, readRows } from '../../../support/store/reading.ts';
import { openFor, openRaw } from '../../../support/store/sqlite/sqlite.ts';

/** Texts of many lengths: a copy of a row takes steps of sixteen bytes, and then single ones. */
const row = (_id: number) => BSON.serialize({ _id, text: 'x'.repeat(_id % 40) });
const ROWS = Array.from({ length: 200 }, (_, n) => row(n));

test('rows that lie in order come in their order, however many are asked for', async (t) => {
  const store = await openFor(t, await temporaryFolder(t));
  const rows = await store.open({ name: 'orders', collection: 'orders', indexes: [] });
  await rows.insert(ROWS, 'fail');
  for (const size of [1, 2, 150, 200, 500]) {
    const read = await readRows(rows, BY_ID, {}, { rows: size, bytes: PLENTY });
    assert.deepEqual(read.rows, ROWS.slice(0, size));
  }
  const few = await readRows(rows, BY_ID, {}, { rows: 500, bytes: 1_000 });
  assert.deepEqual(few.rows, ROWS.slice(0, few.rows.length));
  assert.ok(few.rows.length > 10 && few.rows.length < 40);
});

test('bytes that are no rows are not put into the opposite order, and no other bytes are touched', () => {
  const slots = new Slots();
  const from = slots.take(4_096);
  const to = slots.take(4_096);
  const bytes = Buffer.concat([1, 2, 3].map((n) => storedRow(row(n))));
  from.bytes().set(bytes);
  to.bytes().fill(7);
  const reverse = rowReversalIn(slots);
  assert.equal(reverse(from, bytes.length, to), true);
  const turned = Buffer.concat([3, 2, 1].map((n) => storedRow(row(n))));
  assert.deepEqual(Buffer.from(to.bytes(bytes.length)), turned);
  assert.ok(
    to
      .bytes()
      .subarray(bytes.length)
      .every((byte) => byte === 7),
  );
  for (const length of [bytes.length - 1, bytes.length + 1, 3])
    assert.equal(reverse(from, length, to), false);
  from.bytes()[6] = 255;
  assert.equal(reverse(from, bytes.length, to), false);
});

test('the rows before one whose length is damaged come, and the damage names it', async (t) => {
  const directory = await temporaryFolder(t);
  const store = await openFor(t, directory);
  const rows = await store.open({ name: 'orders', collection: 'orders', indexes: [] });
  await rows.insert(ROWS, 'fail');
  const stored = storedRow(row(120));
  const damaged = Buffer.from(stored);
  damaged.writeUInt8(255, HEAD_BYTES);
  const { connection, sets, close } = openRaw(directory);
  connection.run(
    `update ${rowsTable(sets.get('resource orders').number)} set d = ? where d = ?`,
    damaged,
    stored,
  );
  close();
  const before = await readRows(rows, BY_ID, {}, { rows: 120, bytes: PLENTY });
  assert.deepEqual(before.rows, ROWS.slice(0, 120));
  const after = readRows(rows, BY_ID, {}, { rows: 200, bytes: PLENTY });
  await assert.rejects(after, ({ cause }: Error) =>
    (cause as Error).message.startsWith('row 120 of a batch'),
  );
});
