import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numberRange } from '../../support/store/number-range.ts';
import { BSON, Double, MaxKey, MinKey, ObjectId } from '../../../src/store/bson.ts';
import { BSON_TYPE } from '../../../src/store/bson-types.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import type { Bookmark } from '../../../src/store/bookmark.ts';
import { bracketsBelow } from '../../../src/store/mongo/type-brackets.ts';
import { commandKey } from '../../../src/store/mongo/bookmark-in-command.ts';
import { rangesOf } from '../../../src/store/mongo/index-ranges.ts';
import { compareValues } from '../../../src/store/order.ts';

test('below an id are the rest of its type and then each lower type', () => {
  const filters = (id: unknown, type: number) => bracketsBelow(id, type).map(({ filter }) => filter._id);
  assert.deepEqual(filters('b', 2), [
    { $lt: 'b' },
    { $gte: -Infinity },
    { $eq: NaN },
    { $eq: null },
    { $eq: new MinKey() },
  ]);
  assert.deepEqual(filters(new Double(NaN), 1), [
    { $lt: new Double(NaN) },
    { $eq: null },
    { $eq: new MinKey() },
  ]);
  assert.equal(filters(new ObjectId(), 7).length, 8);
  assert.throws(() => bracketsBelow([], 4), TypeError);
});

test('the brackets descend in the order that compares ids', () => {
  const floors = bracketsBelow(new MaxKey(), BSON_TYPE.maxKey).map(({ floor: { value } }) =>
    typeof value === 'number' ? new Double(value) : value,
  );
  for (const [n, lower] of floors.slice(1).entries())
    assert.ok(compareValues(floors[n], lower) > 0, `${String(floors[n])} above ${String(lower)}`);
});
test('a range that is certainly empty is not read', () => {
  for (const direction of [1, -1] as const) {
    const plan = { sort: 'price', direction, range: numberRange('5', '6') } as const;
    assert.equal(rangesOf({ ...plan, range: numberRange('5', '4') }, null, false).length, 0);
    const beyond = makeBookmark({ price: direction === 1 ? 7 : 4, _id: 1 });
    assert.equal(rangesOf(plan, beyond, false).length, 0);
    assert.equal(rangesOf(plan, makeBookmark({ price: 5.5, _id: 1 }), false).length, 1);
  }
});

test('a range open on one side ends before an infinity, so that it contains finite numbers only', () => {
  const [above] = rangesOf({ sort: 'price', direction: 1, range: numberRange('5', undefined) }, null, false);
  assert.ok(above);
  assert.deepEqual(above.min, { price: new Double(5), _id: new MinKey() });
  assert.deepEqual(above.max, { price: Infinity, _id: new MinKey() });
  const [below] = rangesOf({ sort: 'price', direction: -1, range: numberRange(undefined, '5') }, null, false);
  assert.ok(below);
  assert.deepEqual(below.min, { price: -Infinity, _id: new MaxKey() });
  assert.deepEqual(below.max, { price: new Double(5), _id: new MaxKey() });
});

test('a value that no command carries exactly is refused as a bookmark', () => {
  const sound = BSON.serialize({ _id: new Date(0) }) as Bookmark;
  assert.deepEqual(commandKey(sound), { _id: new Date(0) });
  const beyond = Buffer.from(sound);
  beyond.writeBigInt64LE(2n ** 60n, 9);
  assert.throws(() => commandKey(beyond as unknown as Bookmark), { code: 'invalid-cursor' });
  const symbol = Buffer.from(BSON.serialize({ _id: 'x' }));
  symbol.writeUInt8(0x06, 4); // undefined, deprecated
  assert.throws(() => commandKey(symbol as unknown as Bookmark));
  const nan = Buffer.from(BSON.serialize({ _id: NaN }));
  nan.writeUInt8(0xff, nan.length - 2); // another bit pattern of NaN
  assert.ok(commandKey(nan as unknown as Bookmark));
});
