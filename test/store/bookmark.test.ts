import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bookmarkOf } from '../../src/store/bookmark.ts';
import {
  BSON,
  BSONRegExp,
  Binary,
  Decimal128,
  Double,
  Int32,
  Long,
  ObjectId,
  UUID,
} from '../../src/store/values/bson.ts';

const _id = new ObjectId('0123456789abcdef01234567');

/** A value of each type that an ordered path may have. */
const VALUES: readonly unknown[] = [
  ...[new Int32(1), new Double(1), new Double(-0), Long.fromString('9007199254740993')],
  ...[Decimal128.fromString('1.10'), Decimal128.fromString('-0E+3')],
  ...['', 'a\0b', '𝄞', null, true, new Date(-1), new UUID(), new Binary(Buffer.from('x'), 128)],
  ...[{ c: 1, a: { deep: [] } }, [1, 'two']],
];

/** Rows, and what an index of the path `a.b` has for them. Undefined: null. */
const NESTED: readonly [what: string, row: Record<string, unknown>, found: unknown][] = [
  ['a value', { _id, a: { x: 1, b: 'yes' } }, 'yes'],
  ['a value behind other fields', { b: 1, ab: { b: 2 }, a: { ab: 3, b: 'yes', bb: 4 }, _id }, 'yes'],
  ['no outer field', { _id, b: 1 }, null],
  ['no inner field', { _id, a: { c: 1, ab: 2 } }, null],
  ['an empty document', { _id, a: {} }, null],
  ['a scalar on the way', { _id, a: 5 }, null],
  ['null on the way', { _id, a: null }, null],
  ['a field whose own name has a dot', { _id, 'a.b': 5, a: { c: 1 } }, null],
  ['a document', { _id, a: { b: { c: 1 } } }, { c: 1 }],
  ['an array at the end', { _id, a: { b: [1, 2] } }, [1, 2]],
  ['an array on the way', { _id, a: [{ b: 1 }, { b: 2 }] }, [{ b: 1 }, { b: 2 }]],
];

function assertBytes(actual: Uint8Array, expected: Uint8Array, what: string): void {
  assert.equal(Buffer.from(actual).toString('hex'), Buffer.from(expected).toString('hex'), what);
}

test('a bookmark has the bytes that the row has at the path that orders it, and at its key', () => {
  for (const [n, value] of VALUES.entries())
    for (const [sort, row] of [
      ['p', { first: 1, p: value, _id, last: 'x' }],
      ['größe.p', { größe: { first: 1, p: value, last: 'x' }, _id }],
      ['a.b.c.d', { _id, a: { b: { c: { d: value } } } }],
    ] as const)
      assertBytes(
        bookmarkOf(BSON.serialize(row), { sort }),
        BSON.serialize({ [sort]: value, _id }),
        `${sort}, value ${n}`,
      );
});

test('the bookmark of a nested path has what an index of the path has', () => {
  for (const [what, row, found] of NESTED)
    assertBytes(
      bookmarkOf(BSON.serialize(row), { sort: 'a.b' }),
      BSON.serialize({ 'a.b': found, _id }),
      what,
    );
});

test('the bookmark of a row with a regular expression, a rare type, has the bytes that the row has', () => {
  const rare = new BSONRegExp('p', 'i');
  for (const [row, price] of [
    [{ rare, price: 5, a: 1, _id }, 5],
    [{ price: rare, _id }, rare],
    [{ rare, _id }, null],
  ] as const)
    assertBytes(
      bookmarkOf(BSON.serialize(row), { sort: 'price' }),
      BSON.serialize({ price, _id }),
      JSON.stringify(row),
    );
});

test('the first of two fields of a name is that of the bookmark', () => {
  const one = BSON.serialize({ p: 1 });
  const two = BSON.serialize({ p: 2, _id });
  const row = Buffer.concat([Buffer.alloc(4), one.subarray(4, -1), two.subarray(4)]);
  row.writeInt32LE(row.length);
  assertBytes(bookmarkOf(row, { sort: 'p' }), BSON.serialize({ p: 1, _id }), '');
});

test('bytes that are not a BSON document have no bookmark', () => {
  const row = BSON.serialize({ price: 5, text: 'x', _id });
  const changed = (at: number, byte: number) => row.map((value, n) => (n === at ? byte : value));
  const damaged = [
    ['cut', row.subarray(0, -1)],
    ['empty', new Uint8Array(0)],
    ['no NUL at its end', changed(row.length - 1, 1)],
    ['longer than it is', changed(0, row.length + 1)],
    ['a type that does not exist', changed(4, 0x55)],
    ['a text longer than the row', changed(row.lastIndexOf('x'.charCodeAt(0)) - 4, 0x7f)],
  ] as const;
  for (const [what, bytes] of damaged)
    assert.throws(
      () => bookmarkOf(bytes, { sort: 'price' }),
      (error) => BSON.BSONError.isBSONError(error),
      what,
    );
});
