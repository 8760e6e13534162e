import { Binary, Decimal128, Double, Int32, Long, ObjectId, Timestamp, UUID } from '../src/store/bson.ts';
import { changeFeedContract } from './change-feed.contract.ts';
import { testMongoStore } from './support/mongo.ts';

const VALUES = ['a', 'b', 'c'];

/** Without null, which the driver replaces on insert, and without MinKey and MaxKey, which no read can include. */
const IDS: readonly unknown[] = [
  ...[-3, 0, 7, 8, 2 ** 31 - 1].map((n) => new Int32(n)),
  ...[-0.0, 0.5, 7, 1e300, Infinity, NaN].map((n) => new Double(n)),
  ...['7', '9007199254740993', '-9223372036854775808'].map((digits) => Long.fromString(digits)),
  ...['7.0', '7', '0.1', 'NaN', '1E+6000'].map((digits) => Decimal128.fromString(digits)),
  ...['', 'a', 'a\0', 'é', '𝄞', 'x'.repeat(256), 'y'.repeat(1_500)],
  ...[0, 7, 255].map((n) => new ObjectId(n.toString(16).padStart(24, '0'))),
  ...['10000000-0000-4000-8000-000000000000', 'f0000000-0000-4000-8000-000000000000'].map(
    (id) => new UUID(id),
  ),
  ...[true, false, new Date(0), new Date(-1), new Timestamp({ t: 1, i: 2 })],
  ...[{ a: new Int32(1) }, { a: new Double(1) }, { a: 'b', c: null }, {}],
  ...[new Binary(Buffer.from('ab'), 0), new Binary(Buffer.alloc(0), 5)],
];

changeFeedContract('items of mongodb', async (t) => {
  const opened = await testMongoStore(t);
  if (!opened) return null;
  const { store, slots } = opened;
  return { rows: store.items, slots, field: 'category', values: VALUES, ids: IDS };
});

changeFeedContract('a resource of mongodb through the driver', async (t) => {
  const opened = await testMongoStore(t, { lane: false });
  if (!opened) return null;
  const { store, slots, client } = opened;
  await client.db().createCollection('rows');
  const rows = await store.open({ name: 'rows', collection: 'rows', indexes: [['status']] });
  return { rows, slots, field: 'status', values: VALUES, ids: IDS };
});
