import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON } from '../../../../src/store/values/bson.ts';
import { BatchBuilder } from '../../../../src/store/mongo/read/batch-builder.ts';
import { Slots } from '../../../../src/store/turns/slots.ts';
import { PLENTY, takeRows } from '../../../support/store/reading.ts';

const PLAN = { sort: '_id' } as const;
const ROWS = [1, 2, 3].map((_id) => BSON.serialize({ _id, text: 'x'.repeat(_id) }));

const copyOf = (row: Uint8Array) => Buffer.from(row);

/** A reply whose rows begin after 10 other bytes. */
function reply(slots: Slots, bytes: Uint8Array) {
  const slot = slots.take(10 + bytes.length);
  slot.bytes().set(bytes, 10);
  return { slot, start: 10, length: bytes.length, cut: false };
}

function bodyOf(rows: readonly Uint8Array[], firstName = 0): Buffer {
  return Buffer.concat(rows.flatMap((row, n) => [Buffer.from(`\x03${firstName + n}\0`), row]));
}

test('a few rows of a large reply do not hold its slot', () => {
  const slots = new Slots();
  const builder = new BatchBuilder(PLAN, { rows: 1, bytes: PLENTY });
  const large = BSON.serialize({ _id: 2, text: 'x'.repeat(1_000_000) });
  builder.take(reply(slots, bodyOf([...ROWS.slice(0, 1), large])));
  const batch = builder.toBatch(slots, true);
  assert.ok(batch.slot.capacity <= 1024);
  assert.deepEqual(takeRows(batch), ROWS.slice(0, 1).map(copyOf));
  assert.equal(slots.taken, 0);
});

test('a reply with damaged rows is refused, and its slot is released', () => {
  const slots = new Slots();
  const sound = bodyOf(ROWS);
  for (const [at, value] of [
    [3, 4],
    [3, 0],
    [3, -1],
    [3, sound.length],
    [3, 0x7fffffff],
  ] as const) {
    const damaged = Buffer.from(sound);
    damaged.writeInt32LE(value, at);
    const builder = new BatchBuilder(PLAN, { rows: 9, bytes: PLENTY });
    assert.throws(() => builder.take(reply(slots, damaged)), { code: 'store-unavailable' }, String(value));
    builder.release();
    assert.equal(slots.taken, 0);
  }
  for (let length = 1; length < sound.length; length++) {
    const builder = new BatchBuilder(PLAN, { rows: 9, bytes: PLENTY });
    const cut = reply(slots, sound.subarray(0, length));
    try {
      builder.take(cut);
      assert.ok(builder.rows < 3);
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'store-unavailable');
    }
    builder.release();
    assert.equal(slots.taken, 0, `cut at ${length}`);
  }
});
