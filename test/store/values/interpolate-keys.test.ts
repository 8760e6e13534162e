import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placesBetween } from '../../../src/store/values/interpolate-keys.ts';
import { Binary, Decimal128, Double, Int32, ObjectId } from '../../../src/store/values/bson.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';

const uuid = (hex: string) => new Binary(Buffer.from(hex, 'hex'), Binary.SUBTYPE_UUID);

/** Two keys, and the three places that divide what lies between them into four parts. */
const DIVIDED: readonly (readonly [first: unknown, last: unknown, places: readonly unknown[]])[] = [
  [new Date(0), new Date(4), [new Date(1), new Date(2), new Date(3)]],
  [
    new ObjectId('000000000000000000000000'),
    new ObjectId('400000000000000000000000'),
    ['1', '2', '3'].map((digit) => new ObjectId(digit.padEnd(24, '0'))),
  ],
  [
    uuid('00000000000000000000000000000000'),
    uuid('00000000000000000000000000000004'),
    ['1', '2', '3'].map((digit) => uuid(digit.padStart(32, '0'))),
  ],
  [new Int32(7), new Int32(7), [7, 7, 7].map((n) => new Double(n))],
  [new Double(-1.5), Decimal128.fromString('2.5'), [-0.5, 0.5, 1.5].map((n) => new Double(n))],
  [new Double(-1e308), new Double(1e308), [-5e307, 0, 5e307].map((n) => new Double(n))],
];

test('places are calculated between keys of one type, and between numbers', () => {
  for (const [first, last, expected] of DIVIDED) {
    const places = placesBetween(makeBookmark({ _id: first }), makeBookmark({ _id: last }), 4);
    assert.deepEqual(
      places,
      expected.map((_id) => makeBookmark({ _id })),
    );
  }
});

test('places in the order of a path are calculated from its values', () => {
  const first = makeBookmark({ 'a.b': new Int32(0), _id: 'z' });
  const last = makeBookmark({ 'a.b': new Int32(4), _id: 'y' });
  const places = [1, 2, 3].map((n) => makeBookmark({ 'a.b': new Double(n), _id: 'z' }));
  assert.deepEqual(placesBetween(first, last, 4, 'a.b'), places);
});

test('no places are calculated between texts, other types, and keys of two types', () => {
  const pairs = [
    ['a', 'b'],
    [null, new Int32(1)],
    [new Double(1), new Double(Infinity)],
    [new Double(1), '9'],
    [new ObjectId('0'.repeat(24)), 'z'],
    [new Binary(Buffer.alloc(16)), new Binary(Buffer.alloc(16, 1))],
    [uuid('00'.repeat(16)), new Binary(Buffer.alloc(8), Binary.SUBTYPE_UUID)],
  ];
  for (const [first, last] of pairs) {
    assert.equal(placesBetween(makeBookmark({ _id: first }), makeBookmark({ _id: last }), 4), null);
  }
});
