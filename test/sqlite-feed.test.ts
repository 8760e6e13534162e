import { existsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { BSON, type Document } from 'bson';
import { makeBookmark } from '../src/store/bookmark.ts';
import { openSqlite } from '../src/store/sqlite.ts';
import { Slots } from '../src/store/slots.ts';
import type { RowStore, Store } from '../src/store/store.ts';
import { changeFeedContract, type OpenFeed } from './change-feed.contract.ts';
import { changeFeedModelContract, type ModelSet, type ModelSets } from './change-feed.model.contract.ts';
import { resourcesContract } from './resources.contract.ts';
import { removeDirectory } from './support/directory.ts';
import { ANY_IDS, ITEM_IDS, VALUES } from './support/feed-ids.ts';
import { testDirectory, testSqlite } from './support/sqlite.ts';
import { NEVER } from './support/reading.ts';
import { userStoreContract } from './users-store.contract.ts';

userStoreContract('sqlite', testSqlite);
changeFeedContract('items of sqlite', async (t: TestContext): Promise<OpenFeed> => {
  const { store, slots } = await testSqlite(t);
  return { rows: store.items, slots, field: 'category', values: VALUES, ids: ITEM_IDS };
});

changeFeedContract('a resource of sqlite', async (t: TestContext): Promise<OpenFeed> => {
  const { store, slots } = await testSqlite(t);
  const rows = await store.open({ name: 'rows', collection: 'rows', indexes: [['status']] });
  return { rows, slots, field: 'status', values: VALUES, ids: ANY_IDS };
});

const RESOURCES = 7;
/** A file system in memory, where there is one: nothing here depends on what is on disk. */
const MEMORY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** Writes as an import does. */
function writes(rows: RowStore): ModelSet['write'] {
  return async (removed, put) => {
    if (removed.length > 0) await rows.remove?.(removed.map((_id) => makeBookmark({ _id })));
    if (put.length === 0) return;
    const { refused } = await rows.insert(
      put.map((row) => BSON.serialize(row)),
      'replace',
    );
    assert.deepEqual(refused, []);
  };
}

changeFeedModelContract('embedded store', 1, async (t: TestContext): Promise<ModelSets> => {
  const directory = await mkdtemp(join(MEMORY, 'sluice-sqlite-'));
  t.after(() => removeDirectory(directory));
  const slots = new Slots();
  // Some calls take several transactions, and the log loses changes before its readers had them.
  const store = await openSqlite({ directory, slots, transactionRows: 5, mostChanges: 40 });
  t.after(() => store.close());
  const { items } = store;
  const shared = {
    values: VALUES,
    replacesOtherTypes: true,
    fewestSteps: 6,
    settle: () => Promise.resolve(),
  };
  const sets: ModelSet[] = [
    {
      ...{ rows: items, field: 'category', ids: ITEM_IDS, ...shared, write: writes(items) },
      replace: async () => {
        await items.clear(NEVER);
      },
    },
  ];
  for (let n = 0; n < RESOURCES; n++) {
    const declaration = { name: `rows${n}`, collection: `rows${n}`, indexes: [['status']] };
    const rows = await store.open(declaration);
    const owned = await store.make(declaration, () => undefined);
    sets.push({
      ...{ rows, field: 'status', ids: ANY_IDS, ...shared, write: writes(rows) },
      replace: async () => {
        await owned.clear(NEVER);
      },
    });
  }
  return { slots, sets };
});

/** One store for all random collections of a test. */
const opened = new WeakMap<TestContext, Promise<{ readonly store: Store; readonly slots: Slots }>>();
let made = 0;

resourcesContract(
  'sqlite',
  { first: 0, count: Number(process.env.COLLECTIONS ?? (process.env.LONG ? 3_000 : 190)) },
  async (t, random) => {
    const opening = opened.get(t) ?? openStore(t);
    opened.set(t, opening);
    const { store, slots } = await opening;
    const collection = `rows.${made++}`;
    const indexes = random.indexes
      .map(({ key }) => key.map(([path]) => path))
      .map((paths) => beforeKey(paths));
    const rows = await store.open({
      name: 'rows',
      collection,
      indexes: indexes.filter(({ length }) => length > 0),
    });
    const { refused } = await rows.insert(
      (random.documents as Document[]).map((document) => BSON.serialize(document)),
      'fail',
    );
    assert.deepEqual(refused, []);
    return { collection: rows, slots, check: () => Promise.resolve() };
  },
);

/** The fields of an index before the key of the row, each once. */
function beforeKey(paths: readonly string[]): readonly string[] {
  const end = paths.indexOf('_id');
  return [...new Set(end < 0 ? paths : paths.slice(0, end))];
}

async function openStore(t: TestContext): Promise<{ store: Store; slots: Slots }> {
  const slots = new Slots();
  const store = await openSqlite({ directory: await testDirectory(t), slots });
  t.after(() => store.close());
  return { store, slots };
}
