import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { AppError } from '../../../src/errors.ts';
import { importItems } from '../../../src/import/import.ts';
import { generateItems } from '../../../src/import/synthetic.ts';
import { expectedItems, makeItems } from '../../support/store/items.ts';
import { openStore, testMongoStore } from '../../support/store/mongo/mongo.ts';
import { NEVER, PLENTY, assertChain, readRows } from '../../support/store/reading.ts';

const BY_PRICE = { sort: 'price', direction: 1 } as const;
const SIZE = { rows: 100_000, bytes: PLENTY };

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

test('an import into an empty collection makes the indexes after the rows, and leaves those of others alone', async (t) => {
  const opened = await openEmpty(t);
  if (!opened) return;
  await opened.client
    .db()
    .collection('items')
    .createIndexes([{ key: { name: 1 }, unique: true }]);
  const during: string[][] = [];
  let isPostponed = false;
  const { items } = opened.store;
  const result = await importItems({
    open: () =>
      Promise.resolve({
        insert: async (...call) => {
          during.push(await indexesOf(opened));
          return items.insert(...call);
        },
        clear: (...call) => items.clear(...call),
        ...(items.postponeIndexes && { postponeIndexes: () => items.postponeIndexes?.() ?? assert.fail() }),
      }),
    ...{ source: generateItems(5_000, 1), onConflict: 'fail', signal: NEVER },
    progress: () => undefined,
    report: (at, reason) => assert.fail(`${at}: ${reason}`),
    onPostponed: () => (isPostponed = true),
  });
  assert.equal(result.written, 5_000);
  assert.ok(isPostponed);
  assert.ok(during.length > 0);
  for (const names of during) assert.deepEqual(names, ['_id_', 'name_1']);
  assert.deepEqual(await indexesOf(opened), [...WANTED, 'name_1'].sort());
});

test('a collection with rows keeps its indexes during an import', async (t) => {
  const opened = await openEmpty(t);
  if (!opened) return;
  await opened.store.items.insert(
    makeItems(1).map(({ bytes }) => bytes),
    'fail',
  );
  assert.equal(await opened.store.items.postponeIndexes?.(), null);
  assert.deepEqual(await indexesOf(opened), WANTED);
});

test('a server that may not make indexes keeps those that are there', async (t) => {
  const made = await openEmpty(t);
  if (!made) return;
  const opened = await openStore(t, made.uri, { manageIndexes: false });
  assert.equal(await opened.store.items.postponeIndexes?.(), null);
  assert.deepEqual(await indexesOf(made), WANTED);
});

test('a server beside an import, and one that starts after the import was killed, read all rows by an index or refuse', async (t) => {
  const opened = await openEmpty(t);
  if (!opened) return;
  const beside = await openStore(t, opened.uri);
  assert.equal((await readRows(beside.store.items, BY_PRICE, {}, SIZE)).rows.length, 0);
  assert.ok(await opened.store.items.postponeIndexes?.());
  const rows = makeItems(300);
  await opened.store.items.insert(
    rows.map(({ bytes }) => bytes),
    'fail',
  );
  // The process that imports ends here: no other process makes the indexes for it.
  const looked = await readRows(beside.store.items, BY_PRICE, {}, SIZE).then(
    (read) => read.rows.length,
    (error: unknown) => (error instanceof AppError ? error.status : error),
  );
  assert.ok(looked === 503 || looked === rows.length, String(looked));
  const started = await openStore(t, opened.uri);
  await assertChain(started.store.items, BY_PRICE, {}, SIZE, expectedItems(rows, BY_PRICE));
  assert.deepEqual(await indexesOf(opened), WANTED);
});
