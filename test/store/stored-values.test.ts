import assert from 'node:assert/strict';
import { test } from 'node:test';
import { orRelease, type Batch } from '../../src/store/batch.ts';
import { BSON_RANK } from '../../src/store/bson-types.ts';

test('the ranks of types, with which keys in existing files begin, are those of MongoDB and stay', () => {
  assert.deepEqual(BSON_RANK, {
    ...{ null: 5, number: 10, string: 15, document: 20, array: 25, binary: 30, objectId: 35 },
    ...{ boolean: 40, date: 45, timestamp: 47, regularExpression: 50, code: 60, scopedCode: 65, maxKey: 127 },
  });
});

test('a batch is released once when the work that takes it over fails, at once or later', async () => {
  let released = 0;
  const batch = { release: () => released++ } as unknown as Batch;
  const fault = new RangeError('x');
  const failing = [
    () => Promise.reject(fault),
    () => {
      throw fault;
    },
  ];
  for (const work of failing) {
    released = 0;
    await assert.rejects(orRelease(batch, work), fault);
    assert.equal(released, 1);
  }
  released = 0;
  assert.equal(await orRelease(batch, () => Promise.resolve('taken over')), 'taken over');
  assert.equal(released, 0);
});
