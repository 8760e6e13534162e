import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { encodeCursor } from '../../../src/resources/token/cursor.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { Binary, Code, Int32, ObjectId, Timestamp } from '../../../src/store/bson.ts';
import { linesOf, pagesOf } from '../../support/answers.ts';
import { serverOn } from '../../support/process/server.ts';
import { testClient } from '../../support/store/mongo/mongo.ts';
import { testMongo } from '../../support/store/mongo/mongod.ts';

/** Ids that only cursors can carry, among others, in the order of BSON. */
const IDS: readonly unknown[] = [
  null,
  new Int32(5),
  'text',
  // A JavaScript object would sort these names or reject them.
  new Map([
    ['1', 2],
    ['2', 1],
  ]),
  new Map([
    ['2', 1],
    ['1', 2],
  ]),
  new Map([['__proto__', 1]]),
  new Map([['_bsontype', 1]]),
  { a: 1 },
  { a: 1, b: 1 },
  { a: 'x' },
  { a: { b: { c: 1 } } },
  { region: 'north', number: new Int32(1) },
  { region: 'north', number: new Int32(2) },
  { long: 'x'.repeat(6_000) },
  new Map([['_bsontype', 'Long']]),
  {
    b: new Map([
      ['10', new Map([['9', '']])],
      ['8', ''],
    ] as [string, unknown][]),
  },
  {
    c: [
      new Map([
        ['2', 1],
        ['1', 2],
      ]),
      7,
    ],
  },
  new Binary(Buffer.from('abc'), 0),
  new ObjectId('7'.repeat(24)),
  true,
  new Date(0),
  new Timestamp({ t: 5, i: 1 }),
  new Timestamp({ t: 5, i: 2 }),
  new Code('f()'),
  new Code(
    'f()',
    new Map([
      ['2', 1],
      ['1', 2],
    ]),
  ),
  new Code('f()', { a: 1 }),
];

async function serverWith(t: TestContext) {
  const uri = await testMongo(t);
  if (uri === null) return null;
  const server = await serverOn(t, { HTTP_ENGINE: 'uws', MONGODB_URI: uri });
  await server.insert([]);
  const documents = IDS.map((_id, n) => ({ _id, category: 'a', price: new Int32(n % 3) }));
  const database = testClient(t, uri).db();
  const { n } = await database.command({ insert: 'items', documents });
  assert.equal(n, IDS.length);
  return { server, database };
}

for (const sort of ['id_asc', 'price_desc'])
  test(`pages in order ${sort} continue after an id of any type`, async (t) => {
    const opened = await serverWith(t);
    if (!opened) return;
    const { server } = opened;
    const all = await linesOf(server.get(`/items/stream?sort=${sort}`));
    assert.equal(all.length, IDS.length);
    const rows: string[] = [];
    for await (const { text } of pagesOf(server, `/items?limit=1&sort=${sort}`))
      rows.push(text.slice('{"data":['.length, text.lastIndexOf('],"page":')));
    assert.deepEqual(rows, all);
  });

test('an id that looks like an operator is a value: MongoDB refuses to store it, and a forged cursor finds no rows by it', async (t) => {
  const opened = await serverWith(t);
  if (!opened) return;
  const { server, database } = opened;
  for (const _id of [{ $gt: 1 }, { a: { $gt: 1 } }]) {
    const refused = await database
      .command({ insert: 'items', documents: [{ _id, category: 'a', price: 1 }] })
      .catch(String);
    const reply = JSON.stringify(refused);
    assert.match(reply, /\$gt|\$-prefixed/, reply);
  }
  const cursor = encodeCursor('items', { sort: '_id', direction: 1 }, makeBookmark({ _id: { $ne: 1 } }));
  const rows = await linesOf(server.get(`/items/stream?cursor=${cursor}`));
  const documents = IDS.findIndex((id) => id instanceof Map);
  // Documents are ordered by their first field: a number comes before strings and documents.
  assert.deepEqual(rows, (await linesOf(server.get('/items/stream'))).slice(documents));
});
