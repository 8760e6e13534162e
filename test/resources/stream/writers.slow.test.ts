import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Collection } from 'mongodb';
import { MongoClient, Timestamp } from 'mongodb';
import { testMongo } from '../../support/store/mongo/mongod.ts';
import { serverOn, type TestServer } from '../../support/process/server.ts';

const ROUNDS = process.env.LONG ? 12 : 1;
const WRITERS = 10;
const ROWS = 3_000;
const FILLER = 'x'.repeat(1_000);
const SORTS = ['id_asc', 'id_desc', 'price_asc', 'price_desc'];

interface Row {
  readonly _id: string;
  readonly category: string;
  readonly price: number;
  readonly filler: string;
}

function makeRow(n: number): Row {
  const _id = `row-${String(n).padStart(7, '0')}`;
  return { _id, category: n % 2 === 0 ? 'even' : 'odd', price: Math.random() * 100, filler: FILLER };
}

/** Every third row stays unchanged. */
function isTouched(n: number): boolean {
  return n % 3 !== 0;
}

/** Changes prices, deletes and inserts (again) at random until it is stopped. Resolves with the number of writes. */
async function write(items: Collection<Row>, isOver: () => boolean): Promise<number> {
  let writes = 0;
  for (; !isOver(); writes++) {
    const n = Math.floor(Math.random() * ROWS * 1.5);
    if (!isTouched(n)) continue;
    const row = makeRow(n);
    const dice = Math.random();
    if (dice < 0.6) await items.updateOne({ _id: row._id }, { $set: { price: row.price } });
    else if (dice < 0.8) await items.deleteOne({ _id: row._id });
    else await items.updateOne({ _id: row._id }, { $setOnInsert: row }, { upsert: true });
  }
  return writes;
}

interface Line {
  readonly id: string;
  readonly category: string;
  readonly price: number;
}

async function stream(server: TestServer, query: string): Promise<{ lines: Line[]; at: string | null }> {
  const response = await server.get(`/items/stream?${query}`);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const lines = text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
  return { lines, at: response.headers.get('snapshot-at') };
}

/** Ascending in the order of `sort`: by id alone, or by price and id. */
function compare(a: Line, b: Line, sort: string): number {
  const byId = a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
  const ascending = sort.startsWith('price') ? a.price - b.price || byId : byId;
  return sort.endsWith('desc') ? -ascending : ascending;
}

test(`while ${WRITERS} writers change prices, insert and delete, streams keep what is promised, and snapshots are the set at their time`, async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const server = await serverOn(t, { MONGODB_URI: uri, RATE_LIMIT: 'off' });
  const client = new MongoClient(uri);
  t.after(() => client.close());
  const items = client.db().collection<Row>('items');
  const rows = Array.from({ length: ROWS }, (_, n) => makeRow(n));
  await items.insertMany(rows);
  const untouched = rows.filter((_, n) => !isTouched(n)).map(({ _id, ...row }) => ({ id: _id, ...row }));

  let over = false;
  const writing = Promise.all(Array.from({ length: WRITERS }, () => write(items, () => over)));
  try {
    for (let round = 0; round < ROUNDS; round++)
      for (const [turn, sort] of SORTS.entries()) {
        const category = (round + turn) % 2 === 1 ? 'even' : undefined;
        const query = `sort=${sort}${category === undefined ? '' : `&category=${category}`}`;
        const { lines } = await stream(server, query);
        for (const [n, line] of lines.entries()) {
          const next = lines[n + 1];
          // In id order no id occurs twice. In price order a row may occur twice, but never at the same price.
          assert.ok(!next || compare(line, next, sort) < 0, `${query}: ${line.id} before ${next?.id}`);
        }
        const expected = untouched
          .filter((row) => category === undefined || row.category === category)
          .sort((a, b) => compare(a, b, sort));
        const ids = new Set(expected.map(({ id }) => id));
        const came = lines.filter(({ id }) => ids.has(id)).map(({ id, price }) => [id, price]);
        assert.deepEqual(
          came,
          expected.map(({ id, price }) => [id, price]),
          query,
        );

        const snapshot = await stream(server, `${query}&consistency=snapshot`);
        const session = client.startSession({ causalConsistency: false });
        const atClusterTime = Timestamp.fromString(snapshot.at ?? '', 10);
        // Read by the driver and sorted by the test alone.
        const { cursor } = await client.db().command(
          {
            find: 'items',
            filter: category === undefined ? {} : { category },
            batchSize: 2 * ROWS,
            readConcern: { level: 'snapshot', atClusterTime },
          },
          { session },
        );
        const then = (cursor as { firstBatch: Row[] }).firstBatch.map(({ _id, ...row }) => ({
          id: _id,
          ...row,
        }));
        then.sort((a, b) => compare(a, b, sort));
        assert.deepEqual(
          snapshot.lines.map(({ id, price }) => [id, price]),
          then.map(({ id, price }) => [id, price]),
          `${query} at ${snapshot.at}`,
        );
        await session.endSession();
      }
  } finally {
    over = true;
  }
  const writes = (await writing).reduce((sum, count) => sum + count, 0);
  t.diagnostic(`${writes} writes beside ${2 * ROUNDS * SORTS.length} streams`);
  assert.ok(writes > 100 * ROUNDS);
});
