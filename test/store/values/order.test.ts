import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { BSON, Double, Int32, Long } from '../../../src/store/values/bson.ts';
import { comparePlaces, compareValues } from '../../../src/store/values/order.ts';
import { anyId, anyValue, EDGES } from '../../support/store/any-value.ts';
import { ORDER } from '../../support/store/values.ts';
import fc from '../../support/fast-check.ts';
import { testMongoStore } from '../../support/store/mongo/mongo.ts';

test('bookmarks are compared by the value of the sort and then by the key, dates and texts as they are', () => {
  const place = (price: unknown, _id: unknown) => makeBookmark({ price, _id });
  assert.ok(comparePlaces(place(1, 'b'), place(2, 'a')) < 0);
  assert.ok(comparePlaces(place(new Double(1), 'b'), place(new Int32(1), 'a')) > 0);
  assert.equal(comparePlaces(place(1, new Int32(7)), place(1, Long.fromNumber(7))), 0);
  const dates = [2n ** 60n, 2n ** 60n + 1n].map((ms) => {
    const bookmark = Buffer.from(makeBookmark({ _id: new Date(0) }));
    bookmark.writeBigInt64LE(ms, 9); // beyond the years of JavaScript
    return bookmark as unknown as ReturnType<typeof makeBookmark>;
  });
  const [early, late] = dates;
  assert.ok(early && late && comparePlaces(early, late) < 0);
});

test("the sign of a comparison is that of mongod's, for random pairs of values of all types", async (t) => {
  const opened = await testMongoStore(t);
  if (!opened) return;
  const one = fc.oneof(anyValue, fc.constantFrom(...ORDER), fc.constantFrom(...EDGES), anyId);
  const pairs = [
    ...fc.sample(fc.tuple(one, one), 2_000),
    ...fc.sample(fc.tuple(fc.constantFrom(...EDGES), fc.constantFrom(...EDGES)), 2_000),
  ];
  const documents = pairs.map(([a, b], _id) => ({ _id, a: [a], b: [b] }));
  const database = opened.client.db();
  for (let at = 0; at < documents.length; at += 500)
    await database.command({ insert: 'pairs', documents: documents.slice(at, at + 500) });
  const signs = await database
    .collection('pairs')
    .aggregate<{ sign: number }>([{ $sort: { _id: 1 } }, { $project: { sign: { $cmp: ['$a', '$b'] } } }])
    .toArray();
  assert.equal(signs.length, pairs.length);
  for (const [n, { sign }] of signs.entries()) {
    const { a, b } = documents[n] ?? {};
    if (Math.sign(compareValues(a, b)) !== sign)
      assert.fail(`${sign} of ${BSON.EJSON.stringify({ a, b }, { relaxed: false })}`);
  }
  assert.ok(signs.filter(({ sign }) => sign === 0).length > 10, 'some are equal');
});
