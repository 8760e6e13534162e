import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numberRange } from '../../support/store/number-range.ts';
import fc from '../../support/fast-check.ts';
import { AppError } from '../../../src/base/errors.ts';
import { ALWAYS_FITS_BYTES, MAX_CURSOR_BYTES, encodeCursor } from '../../../src/resources/token/cursor.ts';
import { makeBookmark, type Bookmark } from '../../../src/store/bookmark.ts';
import { BSON, Decimal128, Double, Int32, Long, MinKey, ObjectId } from '../../../src/store/values/bson.ts';
import type { Plan } from '../../../src/store/store.ts';
import { inCategory } from '../../support/store/items.ts';
import { decodeCursor, forgedToken } from '../../support/resources/tokens.ts';

const BY_ID: Plan = { sort: '_id', direction: 1 };
const BY_PRICE: Plan = { sort: 'price', direction: -1, ...inCategory('c'), range: numberRange('1', '9') };

function codeOf(cursor: string, plan: Plan, collection = 'items'): string {
  try {
    decodeCursor(cursor, collection, plan);
    return 'ok';
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
}

/** A cursor that an attacker could make: any payload with a valid checksum. */
function forge(plan: Plan, payload: Uint8Array): string {
  return encodeCursor('items', plan, payload as Bookmark);
}

test('a cursor belongs to the paths, values and types of its equalities, in whatever order an index has them', () => {
  const a = { path: 'a.b', value: new Int32(5) };
  const b = { path: 'c', value: null };
  const plan: Plan = { sort: 'd.e', direction: 1, equals: [a, b] };
  const cursor = encodeCursor('orders', plan, makeBookmark({ 'd.e': 'x', _id: 1 }));
  const codeFor = (equals: Plan['equals']) =>
    codeOf(cursor, { ...plan, ...(equals && { equals }) }, 'orders');
  assert.equal(codeFor([a, b]), 'ok');
  assert.equal(codeFor([b, a]), 'ok');
  const others: NonNullable<Plan['equals']>[] = [
    [],
    [a],
    [{ ...a, path: 'a' }, b],
    [{ ...a, value: '5' }, b],
    [{ ...a, value: new Double(5) }, b],
    [a, { ...b, value: 'null' }],
    [
      { path: 'c', value: a.value },
      { path: 'a.b', value: b.value },
    ],
    [a, b, { path: 'f', value: true }],
  ];
  for (const equals of others) assert.equal(codeFor(equals), 'cursor-mismatch', JSON.stringify(equals));
});

for (const plan of [BY_ID, { ...BY_ID, at: 7710650616372002818n }])
  test(`every bit flipped and every cut is an invalid cursor, ${plan.at === undefined ? 'without a point in time' : 'with a point in time'}`, () => {
    const bookmark = makeBookmark({ _id: new ObjectId('0123456789abcdef01234567') });
    const cursor = encodeCursor('items', plan, bookmark);
    const bytes = Buffer.from(cursor, 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      assert.equal(codeOf(flipped.toString('base64url'), BY_ID), 'invalid-cursor', `bit ${bit}`);
    }
    for (let length = 0; length < cursor.length; length++) {
      assert.equal(codeOf(cursor.slice(0, length), BY_ID), 'invalid-cursor', `cut at ${length}`);
    }
  });

test('a forged cursor with a valid checksum is accepted only when its keys are valid', () => {
  const cases: [plan: Plan, payload: Uint8Array, code: string][] = [
    [BY_ID, BSON.serialize({ _id: { $gt: 1 } }), 'ok'], // a value, never a query
    [BY_ID, BSON.serialize({ _id: [1, 2] }), 'invalid-cursor'],
    [BY_ID, BSON.serialize({ _id: /x/ }), 'invalid-cursor'],
    [BY_ID, BSON.serialize({ _id: new MinKey() }), 'ok'],
    [BY_ID, BSON.serialize({ _id: 1, more: 1 }), 'invalid-cursor'],
    [BY_ID, BSON.serialize({ price: 1, _id: 1 }), 'invalid-cursor'],
    [BY_ID, BSON.serialize({}), 'invalid-cursor'],
    [BY_ID, new Uint8Array(0), 'invalid-cursor'],
    [BY_ID, Buffer.from('ffffff7f02', 'hex'), 'invalid-cursor'],
    [BY_PRICE, BSON.serialize({ _id: 1, price: 2 }), 'invalid-cursor'],
    [BY_PRICE, BSON.serialize({ price: 0.5, _id: 1 }), 'ok'],
    [BY_PRICE, BSON.serialize({ price: 9.5, _id: 1 }), 'ok'],
    [BY_PRICE, BSON.serialize({ price: null, _id: 1 }), 'ok'],
    [BY_PRICE, BSON.serialize({ price: 'x', _id: 1 }), 'ok'],
    [BY_PRICE, BSON.serialize({ price: NaN, _id: 1 }), 'ok'],
    [BY_PRICE, BSON.serialize({ price: Decimal128.fromString('9.0'), _id: 1 }), 'ok'],
    [BY_PRICE, BSON.serialize({ price: new Long(1), _id: 1 }), 'ok'],
  ];
  for (const [plan, payload, code] of cases) assert.equal(codeOf(forge(plan, payload), plan), code);
});

test('arbitrary bytes as a cursor cause no error other than invalid-cursor', () => {
  const runs = process.env.LONG ? 1_000_000 : 10_000;
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.base64String()), (text) => codeOf(text, BY_ID) === 'invalid-cursor'),
    { numRuns: runs },
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.option(fc.bigInt(0n, 2n ** 64n - 1n)), (payload, at) =>
      ['invalid-cursor', 'ok'].includes(
        codeOf(forge({ ...BY_ID, ...(at !== null && { at }) }, payload), BY_ID),
      ),
    ),
    { numRuns: runs },
  );
});

test('a version that is unknown or earlier, and a token of another kind, is refused', () => {
  const bytes = Buffer.from(encodeCursor('items', BY_ID, makeBookmark({ _id: 1 })), 'base64url');
  for (let version = 0; version < 256; version++) {
    const code = codeOf(forgedToken(version, bytes.subarray(1, -4)), BY_ID);
    assert.equal(code, version === 17 ? 'ok' : 'invalid-cursor', `${version}`);
  }
});

test('the refusal of a cursor of 0.2 says what to do', () => {
  const read = (text: string) => decodeCursor(text, 'items', BY_ID);
  assert.throws(() => read('BwDwuvIB0JLyoBUAAAACX2lkAAcAAABkNTM5NDAAAFzmrE8'), {
    code: 'invalid-cursor',
    message: 'The cursor is not valid: it is of another release. Begin again without the cursor.',
  });
});

test('the longest cursor of a bookmark that always fits is no longer than a cursor may be', () => {
  const equals = Array.from({ length: 255 }, (_, n) => ({ path: `path ${n}`, value: n }));
  const index = { name: 'x', keys: [], isUnique: false };
  const plan: Plan = { ...BY_ID, index, equals, at: 2n ** 64n - 1n, identity: 'f'.repeat(32) };
  const bookmark = new Uint8Array(ALWAYS_FITS_BYTES) as Bookmark;
  const { length } = encodeCursor('items', plan, bookmark);
  assert.equal(length, 11_310, 'as ALWAYS_FITS_BYTES says');
  assert.ok(length <= MAX_CURSOR_BYTES);
});

test('a cursor has the identity of its plan, else that of the rows', () => {
  const bookmark = makeBookmark({ _id: 1 });
  const own = 'a'.repeat(32);
  const other = 'b'.repeat(32);
  const plan = { ...BY_ID, identity: own };
  assert.equal(encodeCursor('items', plan, bookmark, other), encodeCursor('items', plan, bookmark));
  assert.equal(encodeCursor('items', BY_ID, bookmark, own), encodeCursor('items', plan, bookmark));
});

test('a content of any length that is too short for its form is an invalid cursor, and no fault of the server', () => {
  for (let form = 0; form < 256; form++)
    for (let length = 0; length < 16; length++)
      for (const filled of [0, 1, 255]) {
        const code = codeOf(forgedToken(17, Buffer.of(form), Buffer.alloc(length, filled)), BY_ID);
        assert.ok(['invalid-cursor', 'cursor-mismatch'].includes(code), `form ${form}, ${length} bytes`);
      }
  assert.equal(codeOf(forgedToken(17), BY_ID), 'invalid-cursor');
});
