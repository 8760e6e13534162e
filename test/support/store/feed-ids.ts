import {
  Binary,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
  UUID,
} from '../../../src/store/bson.ts';

/** Values of a filtered field. */
export const VALUES = ['a', 'b', 'c'];

/** Ids that items may have. */
export const ITEM_IDS: readonly unknown[] = [
  ...[-3, 0, 7, 8, 2 ** 31 - 1].map((n) => new Int32(n)),
  ...[-0.0, 7, 1e300].map((n) => new Double(n)),
  ...['7', '9007199254740993', '-9223372036854775808'].map((digits) => Long.fromString(digits)),
  ...['', 'a', 'a\0', 'é', '𝄞', 'x'.repeat(256)],
  ...[0, 7, 255].map((n) => new ObjectId(n.toString(16).padStart(24, '0'))),
  ...['10000000-0000-4000-8000-000000000000', 'f0000000-0000-4000-8000-000000000000'].map(
    (id) => new UUID(id),
  ),
];

/** Ids that the rows of a resource of the embedded store may have. */
export const ANY_IDS: readonly unknown[] = [
  ...ITEM_IDS,
  ...['7.0', '7', '0.1', 'NaN', '1E+6000'].map((digits) => Decimal128.fromString(digits)),
  ...[0.5, Infinity, NaN].map((n) => new Double(n)),
  ...[
    new MinKey(),
    null,
    true,
    false,
    new Date(0),
    new Date(-1),
    new Timestamp({ t: 1, i: 2 }),
    new MaxKey(),
  ],
  ...[{ a: new Int32(1) }, { a: new Double(1) }, { a: 'b', c: null }, {}],
  ...[new Binary(Buffer.from('ab'), 0), new Binary(Buffer.alloc(0), 5)],
  'y'.repeat(1_500),
];

/** Ids of rows in MongoDB: without MinKey and MaxKey, which no read can include. */
export const MONGO_IDS: readonly unknown[] = ANY_IDS.filter(
  (id) => !(id instanceof MinKey || id instanceof MaxKey),
);
