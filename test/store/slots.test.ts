import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Slots } from '../../src/store/slots.ts';

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
