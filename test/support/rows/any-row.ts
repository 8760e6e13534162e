import fc, { anyCharacter } from '../fast-check.ts';
import {
  array,
  binary,
  boolean,
  code,
  codeWithScope,
  date,
  dbPointer,
  decimal128,
  document,
  double,
  int32,
  int64,
  maxKey,
  minKey,
  nullValue,
  object,
  objectId,
  regex,
  string,
  symbol,
  timestamp,
  undefinedValue,
} from './bson-writer.ts';
import type { Field, Value } from './bson-writer.ts';

const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array));
const hex24 = fc.uint8Array({ minLength: 12, maxLength: 12 }).map((id) => Buffer.from(id).toString('hex'));

/**
 * Difficult texts: escapes, control characters, all lengths of UTF-8, lone surrogates (encoded as U+FFFD),
 * invalid bytes, long texts.
 */
const text: fc.Arbitrary<Buffer> = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 40 }).map((s) => Buffer.from(s)),
  fc.string({ unit: 'binary-ascii', maxLength: 70 }).map((s) => Buffer.from(s)),
  fc
    .string({
      unit: fc.constantFrom('a', 'é', 'я', '語', '😀', '"', '\\', '\n', '\0', '\x1f', '\x7f', '\u2028'),
    })
    .map((s) => Buffer.from(s)),
  fc
    .tuple(fc.string({ unit: anyCharacter, maxLength: 9 }), fc.integer({ min: 1, max: 150 }))
    .map(([s, times]) => Buffer.from(s.repeat(times))),
  bytes(60),
);
const withoutNul = (buffer: Buffer) => Buffer.from(buffer.filter((byte) => byte !== 0));

const key: fc.Arbitrary<Buffer> = fc.oneof(
  fc
    .constantFrom(
      ...[
        ...'a price _id id 1 0 01 4294967295 -1 __proto__ constructor toJSON hasOwnProperty'.split(' '),
        '',
      ],
      ...[
        'a"b',
        'a\\',
        '$ref',
        '$id',
        '~0~1/a',
        '~0~=1',
        'exactly fifteen',
        'exactly sixteen!',
        'ключ',
        'category and so on and on',
      ],
    )
    .map((name) => Buffer.from(name)),
  text.map(withoutNul),
);

const anyDouble = fc.oneof(
  fc.double(),
  fc.double({ noNaN: true, min: -1e6, max: 1e6 }).map((x) => Math.round(x * 100) / 100),
  fc.constantFrom(0, -0, 1e21, 1e-7, 5e-324, 2 ** 53, 2 ** 53 + 2, Number.MAX_VALUE),
);
const anyInt64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -100_000n, max: 100_000n }),
  fc.constantFrom(2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n, 2n ** 32n, 99_999_999n, 100_000_000n),
);
const anyDate = fc.oneof(
  anyInt64,
  fc.date({ noInvalidDate: true }).map((day) => BigInt(day.getTime())),
  fc.integer({ min: 0, max: 2_000_000_000 }).map((seconds) => BigInt(seconds) * 1000n),
);
/** 16 random bytes rarely form a common number, so most decimals have small coefficients and exponents. */
const anyDecimal = fc.oneof(
  fc.uint8Array({ minLength: 16, maxLength: 16 }),
  fc
    .tuple(fc.bigInt({ min: 0n, max: 2n ** 70n }), fc.integer({ min: -25, max: 10 }), fc.boolean())
    .map(([coefficient, exponent, negative]) => {
      const bits = coefficient | (BigInt(exponent + 6176) << 113n) | (negative ? 1n << 127n : 0n);
      return Uint8Array.from({ length: 16 }, (_, i) => Number((bits >> BigInt(8 * i)) & 255n));
    }),
);

const scalar: fc.Arbitrary<Value> = fc.oneof(
  { weight: 4, arbitrary: text.map(string) },
  { weight: 3, arbitrary: anyDouble.map(double) },
  { weight: 2, arbitrary: fc.integer().map(int32) },
  { weight: 2, arbitrary: anyInt64.map(int64) },
  { weight: 2, arbitrary: anyDate.map(date) },
  { weight: 2, arbitrary: anyDecimal.map(decimal128) },
  hex24.map(objectId),
  fc.boolean().map(boolean),
  fc.tuple(fc.constantFrom(0, 2, 3, 4, 5, 9, 128, 255), bytes(80)).map(([subtype, b]) => binary(subtype, b)),
  fc.uint8Array({ minLength: 16, maxLength: 16 }).map((b) => binary(4, b)),
  fc.constantFrom(nullValue, undefinedValue, minKey, maxKey),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(timestamp),
  fc
    .tuple(fc.constantFrom('^a.*"$', '\\d', ''), fc.constantFrom('', 'i', 'xi', 'gz'))
    .map(([p, o]) => regex(p, o)),
  fc.tuple(fc.constantFrom('db.items', 'items', 'a.b.c'), hex24).map(([ns, id]) => dbPointer(ns, id)),
  text.map((t) => code(t.toString())),
  text.map((t) => symbol(t.toString())),
  fc.tuple(fc.string(), anyInt64, hex24).map(([t, n, id]) =>
    codeWithScope(t, [
      ['n', int64(n)],
      ['o', objectId(id)],
    ]),
  ),
);

const { value } = fc.letrec<{ value: Value; fields: Field[] }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'nesting' },
    { weight: 6, arbitrary: scalar },
    { weight: 1, arbitrary: tie('fields').map(object) },
    { weight: 1, arbitrary: fc.array(tie('value'), { maxLength: 5, depthIdentifier: 'nesting' }).map(array) },
  ),
  fields: fc.array(fc.tuple(key, tie('value')), { maxLength: 6, depthIdentifier: 'nesting' }),
}));

const field = fc.tuple(key, value);
/** A field `id` of the row's own, besides the key. */
const ownId: fc.Arbitrary<Field> = value.map((own): Field => ['id', own]);

/**
 * A row with fields of every type, nested, some of them named `id`. The `_id` also has any type, and is
 * mostly the first field.
 */
export const anyRow: fc.Arbitrary<Buffer> = fc
  .tuple(
    fc.array(fc.oneof({ weight: 12, arbitrary: field }, { weight: 1, arbitrary: ownId }), { maxLength: 8 }),
    value,
    fc.nat(20),
  )
  .map(([fields, id, at]) => {
    const place = at > fields.length ? 0 : at;
    return document([...fields.slice(0, place), ['_id', id], ...fields.slice(place)]);
  });
