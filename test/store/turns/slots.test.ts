import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Slots, type Slot } from '../../../src/store/turns/slots.ts';
import fc from '../../support/fast-check.ts';

test('the memory of slots grows a few times, up to its ceiling', () => {
  const slots = new Slots();
  const buffers = new Set<unknown>();
  let taken = 0;
  const takeAll = () => {
    for (; ; taken++) {
      slots.take(1 << 20);
      buffers.add(slots.memory.buffer);
    }
  };
  assert.throws(takeAll, { name: 'RangeError', message: 'no memory left for batches' });
  assert.equal(taken, 1023, 'all but the part of the module');
  assert.ok(buffers.size <= 9, `${buffers.size} sizes of the memory`);
});

test('slots never overlap, and what small ones leave behind serves large ones', () => {
  const slots = new Slots();
  const held: Slot[] = [];
  const property = fc.property(
    fc.array(fc.oneof(fc.nat(200), fc.integer({ min: 1_000, max: 3_000_000 })), { maxLength: 200 }),
    (steps) => {
      for (const step of steps) {
        if (step > 200) {
          const slot = slots.take(step);
          assert.ok(slot.capacity >= step && slot.address % slot.capacity === 0);
          held.push(slot);
        } else held.splice(step % Math.max(1, held.length), 1)[0]?.release();
      }
      const byAddress = held.toSorted((a, b) => a.address - b.address);
      let end = 0;
      for (const { address, capacity } of byAddress) {
        assert.ok(address >= end && address > 0, `a slot at ${address} begins before ${end}`);
        end = address + capacity;
      }
      assert.ok(end <= slots.memory.buffer.byteLength);
      for (const slot of held.splice(0)) slot.release();
      assert.equal(slots.taken, 0);
    },
  );
  fc.assert(property);

  const all = new Slots();
  for (const size of [64 << 10, 256 << 10, 1 << 20, 8 << 20]) {
    const many = Array.from({ length: (32 << 20) / size }, () => all.take(size));
    many.forEach((slot) => slot.release());
  }
  assert.ok(all.memory.buffer.byteLength < 100 << 20, 'each size takes the same memory');
});

test('a memory that many slots took is replaced when they are released, and slots that stay keep their bytes', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const slots = new Slots();
  const many = Array.from({ length: 32 }, () => slots.take(1 << 20));
  const stays = slots.take(3_000);
  stays.bytes().fill(7);
  const made = slots.over(({ buffer }) => ({ buffer }));
  const { memory } = slots;
  const isAsBefore = () => slots.memory === memory && made().buffer === memory.buffer;
  t.mock.timers.tick(5_000);
  for (const slot of many) slot.release();
  t.mock.timers.tick(1_000);
  assert.ok(isAsBefore(), 'slots were in use less than a second ago');
  stays.isFilling = true;
  t.mock.timers.tick(1_000);
  assert.ok(isAsBefore(), 'the operating system may write to a slot');
  stays.isFilling = false;
  t.mock.timers.tick(1_000);
  assert.ok(slots.memory !== memory && made().buffer === slots.memory.buffer);
  assert.ok(stays.bytes().every((byte) => byte === 7));
  assert.ok(slots.memory.buffer.byteLength < memory.buffer.byteLength);

  const { memory: second } = slots;
  slots.take(4 << 20).release();
  t.mock.timers.tick(5_000);
  assert.equal(slots.memory, second, 'a few slots are no reason');
});

test('a memory that the system does not replace stays, and is replaced later', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const slots = new Slots();
  const many = Array.from({ length: 32 }, () => slots.take(1 << 20));
  for (const slot of many) slot.release();
  t.mock.timers.tick(1_000);
  const { memory } = slots;
  const refused = t.mock.method(WebAssembly, 'Memory', function () {
    throw new RangeError('WebAssembly.Memory(): could not allocate memory');
  });
  t.mock.timers.tick(1_000);
  assert.equal(refused.mock.callCount(), 1);
  assert.equal(slots.memory, memory);
  refused.mock.restore();
  t.mock.timers.tick(1_000);
  assert.notEqual(slots.memory, memory);
});
