import assert from 'node:assert/strict';
import { type TestContext } from 'node:test';
import { importRows } from '../../../src/import/import.ts';
import type { SourceRows } from '../../../src/import/row.ts';
import { generateItems } from '../../../src/import/synthetic.ts';
import { startFill } from '../../support/store/filling.ts';
import { makeItems, insertItems } from '../../support/store/items.ts';
import { openStore, testMongoStore } from '../../support/store/mongo/mongo.ts';
import { NEVER } from '../../support/store/reading.ts';
import { testsWith } from '../../support/tests-with.ts';
import { eachRow } from '../../support/import/each-row.ts';

type Opened = NonNullable<Awaited<ReturnType<typeof testMongoStore>>>;

async function indexesOf({ client }: Opened): Promise<string[]> {
  const indexes = await client.db().collection('items').indexes();
  return indexes.map(({ name }) => String(name)).sort();
}

const WANTED = ['_id_', 'category_1__id_1', 'category_1_price_1__id_1', 'price_1__id_1'];

async function openEmpty(t: TestContext): Promise<Opened | null> {
  const opened = await testMongoStore(t);
  if (opened) assert.deepEqual(await indexesOf(opened), WANTED);
  return opened;
}

const it = testsWith(openEmpty);

it('an import into an empty collection makes the indexes after the rows, and leaves those of others alone', async (opened) => {
  await opened.client
    .db()
    .collection('items')
    .createIndexes([{ key: { name: 1 }, unique: true }]);
  const during: string[][] = [];
  let isPostponed = false;
  const source = async function* (): SourceRows {
    for await (const row of eachRow(generateItems(5_000, 1))) {
      if ('item' in row && row.at % 2_500 === 0) during.push(await indexesOf(opened));
      yield [row];
    }
  };
  const result = await importRows({
    open: () => Promise.resolve(opened.store.items),
    source: source(),
    onConflict: 'fail',
    signal: NEVER,
    progress: () => undefined,
    report: (at, reason) => assert.fail(`${at}: ${reason}`),
    onPostponed: () => (isPostponed = true),
  });
  assert.equal(result.written, 5_000);
  assert.ok(isPostponed);
  assert.equal(during.length, 2);
  for (const names of during) assert.deepEqual(names, ['_id_', 'name_1']);
  assert.deepEqual(await indexesOf(opened), [...WANTED, 'name_1'].sort());
});

/** The indexes while a collection is filled. */
async function duringFill({ store }: Pick<Opened, 'store'>, looked: Opened): Promise<string[]> {
  const fill = startFill(store.items);
  fill.add(
    makeItems(3)
      .slice(2)
      .map(({ bytes }) => bytes),
  );
  await fill.asks();
  const names = await indexesOf(looked);
  fill.end();
  await fill.done;
  return names;
}

it('a collection with rows keeps its indexes during an import', async (opened) => {
  await insertItems(opened.store.items, makeItems(1));
  assert.deepEqual(await duringFill(opened, opened), WANTED);
});

it('a server that may not make indexes keeps those that are there', async (made, t) => {
  const opened = await openStore(t, made.uri, { manageIndexes: false });
  assert.deepEqual(await duringFill(opened, made), WANTED);
});
