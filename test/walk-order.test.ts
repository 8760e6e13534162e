import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { isCertainlyBeyond } from '../src/changes/order.ts';
import { makeBookmark } from '../src/store/bookmark.ts';
import { Decimal128, Double, Int32, Long, ObjectId, Timestamp } from '../src/store/bson.ts';
import { compareBson } from './support/bson-order.ts';
import { ANY_IDS } from './support/feed-ids.ts';

function isBeyond(id: unknown, place: unknown): boolean {
  return isCertainlyBeyond(makeBookmark({ _id: id }), makeBookmark({ _id: place }));
}

function isFinite(value: unknown): boolean {
  if (value instanceof Double) return Number.isFinite(value.value);
  return value instanceof Int32 || (value instanceof Long && !(value instanceof Timestamp));
}

/** Two ids whose order is never in doubt. */
function isPlainPair(a: unknown, b: unknown): boolean {
  return [isFinite, isText, isObjectId, isDate].some((is) => is(a) && is(b));
}
const isText = (value: unknown) => typeof value === 'string';
const isObjectId = (value: unknown) => value instanceof ObjectId;
const isDate = (value: unknown) => value instanceof Date;

test('an id is beyond a place in the order of ids where that is certain, for all pairs of ids', () => {
  let certain = 0;
  for (const id of ANY_IDS)
    for (const place of ANY_IDS) {
      const expected = isPlainPair(id, place) && compareBson(id, place) > 0;
      assert.equal(isBeyond(id, place), expected, inspect({ id, place }));
      if (expected) certain++;
    }
  assert.ok(certain > 50, `${certain} pairs`);
});

test('the order of ids that a walk might have another opinion of is in doubt', () => {
  for (const [low, high] of [
    [new Double(1), new Double(NaN)],
    [new Double(NaN), new Double(1)],
    [new Int32(1), new Double(Infinity)],
    [new Double(-Infinity), new Int32(1)],
    [new Int32(1), Decimal128.fromString('2')],
    [new Int32(1), 'a'],
    [new Timestamp({ t: 1, i: 1 }), new Timestamp({ t: 2, i: 1 })],
    [Long.fromNumber(1), new Timestamp({ t: 2, i: 1 })],
    ['a', new ObjectId()],
    [new ObjectId(), new Date()],
    [false, true],
  ])
    assert.ok(!isBeyond(high, low) && !isBeyond(low, high), inspect({ low, high }));
});

test('numbers of different types are compared exactly, and texts by their bytes', () => {
  assert.ok(isBeyond(Long.fromString('9007199254740993'), new Double(9007199254740992)));
  assert.ok(!isBeyond(new Double(9007199254740992), Long.fromString('9007199254740993')));
  assert.ok(!isBeyond(new Int32(7), new Double(7)), 'equal');
  assert.ok(isBeyond('\u{10000}', '\uffff'), 'UTF-16 has these the other way round');
  assert.ok(!isBeyond('\uffff', '\u{10000}'));
});
