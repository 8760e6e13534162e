import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { MongoClient } from 'mongodb';
import { generateItems } from '../../src/import/synthetic.ts';
import { importItems } from '../../src/import/import.ts';
import type { OwnedCollection } from '../../src/store/store.ts';
import { startProgram } from '../support/process/child-program.ts';
import { openRaw, testDirectory } from '../support/store/sqlite/sqlite.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { openPlace } from '../support/store/place.ts';
import { NEVER, PLENTY, readRows } from '../support/store/reading.ts';
import type { StoreName } from '../support/process/server.ts';

const COUNT = 15_000;
/** Of three kills each. */
const ROUNDS = Number(process.env.ROUNDS ?? (process.env.LONG ? 67 : 1));
const OPENED_MS = 2_000;
const ID_BYTES = 12;
/** How mongod calls the connections of an import. */
const KILLED = 'killed';

/** Runs an import in a process of its own and kills it as soon as it says that `durable` rows are in. Resolves with how many it said. */
async function killedAt(t: TestContext, place: string, durable: number): Promise<number> {
  const named = place.startsWith('mongodb://') ? `${place}&appName=${KILLED}` : place;
  const { child, ended, lines } = startProgram(t, 'import/import-child.ts', named, COUNT);
  let said = 0;
  for await (const line of lines()) {
    said = Number(line);
    if (said >= durable) child.kill('SIGKILL');
  }
  const [, signal] = await ended;
  assert.equal(signal, 'SIGKILL', 'it was killed before its end');
  await untilForgotten(place);
  return said;
}

/** What a process sent before it was killed is done by mongod all the same, as long as its connections are there. */
async function untilForgotten(place: string): Promise<void> {
  if (!place.startsWith('mongodb://')) return;
  const client = await new MongoClient(place).connect();
  const connections = [
    { $currentOp: { allUsers: true, idleConnections: true } },
    { $match: { appName: KILLED } },
  ];
  while (await client.db('admin').aggregate(connections).hasNext());
  await client.close();
}

async function allRows(items: OwnedCollection): Promise<readonly Buffer[]> {
  const size = { rows: 1_000_000, bytes: PLENTY };
  const { rows, more } = await readRows(items, { sort: '_id', direction: 1 }, {}, size);
  assert.equal(more, false);
  return rows;
}

/** The id of a row, which comes first in it: its type and name are before it. */
const idOf = (row: Buffer) => row.toString('hex', 9, 9 + ID_BYTES);

/** The indexes have what the rows have. */
async function checkIndexes(place: string): Promise<void> {
  if (place.startsWith('mongodb://')) {
    const client = await new MongoClient(place).connect();
    const { valid, errors } = await client.db().command({ validate: 'items' });
    await client.close();
    assert.ok(valid === true, JSON.stringify(errors));
    return;
  }
  const file = openRaw(place);
  assert.deepEqual(file.faults(), []);
  file.close();
}

for (const store of ['sqlite', 'mongodb'] satisfies StoreName[])
  test(`An import into ${store}, killed ${3 * ROUNDS} times, loses no durable row and is complete after it is repeated`, async (t) => {
    const expected = new Map<string, Buffer>();
    for await (const row of generateItems(COUNT, 1))
      if ('item' in row) expected.set(idOf(Buffer.from(row.item)), Buffer.from(row.item));
    let longest = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const place = store === 'sqlite' ? await testDirectory(t) : await testMongo(t);
      if (place === null) return;
      let before = 0;
      for (const durable of [1 + round, 2_000 - 23 * round, 4_000 - 47 * round]) {
        const said = await killedAt(t, place, durable);
        await checkIndexes(place);
        const started = performance.now();
        before = await withItems(place, async (items) => {
          longest = Math.max(longest, performance.now() - started);
          const rows = await allRows(items);
          assert.ok(
            rows.length >= before + said,
            `${rows.length} rows are there of ${before} and ${said} durable ones`,
          );
          for (const row of rows) assert.ok(expected.get(idOf(row))?.equals(row), 'every row is whole');
          return rows.length;
        });
      }
      await withItems(place, async (items) => {
        const { written, skipped, failed } = await importItems({
          ...{
            open: () => Promise.resolve(items),
            source: generateItems(COUNT, 1),
            onConflict: 'skip',
            signal: NEVER,
          },
          progress: () => undefined,
          report: (at, reason) => assert.fail(`${at}: ${reason}`),
        });
        // mongod may still carry out what the killed import sent while its rows are counted.
        assert.deepEqual([written + skipped, failed], [COUNT, 0]);
        assert.ok(store === 'mongodb' ? skipped >= before : skipped === before, `${skipped}, not ${before}`);
        assert.ok(Buffer.concat(await allRows(items)).equals(Buffer.concat([...expected.values()])));
      });
    }
    t.diagnostic(`open again within ${longest.toFixed(0)} ms`);
    assert.ok(longest < OPENED_MS);
  });

/** Works with the items at a place, which is closed however that ends. */
async function withItems<T>(place: string, work: (items: OwnedCollection) => Promise<T>): Promise<T> {
  const store = await openPlace(place);
  try {
    return await work(store.items);
  } finally {
    await store.close();
  }
}
