import { existsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { ITEM_COLLECTION } from '../../src/resources/item-collection.ts';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { Slots } from '../../src/store/slots.ts';
import type { OwnedCollection } from '../../src/store/store.ts';
import {
  changeFeedModelContract,
  type ModelAdapter,
  type ModelSet,
  type ModelSets,
} from './changes.model.contract.ts';
import { removeDirectory } from '../support/directory.ts';
import { mongoSets } from '../support/store/mongo/model-mongo.ts';
import { WAYS } from '../support/store/mongo/mongo.ts';
import { ANY_IDS, ITEM_IDS, VALUES } from '../support/store/feed-ids.ts';
import { NEVER } from '../support/store/reading.ts';
import { NO_MONGOD, onEach, openMongo } from './adapters.ts';
import { insertDocuments } from '../support/store/items.ts';

const RESOURCES = 7;
/** A file system in memory, where there is one: nothing here depends on what is on disk. */
const MEMORY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** Writes as an import does. */
function writes(rows: OwnedCollection): ModelSet['write'] {
  return async (removed, put) => {
    if (removed.length > 0) await rows.remove(removed.map((_id) => makeBookmark({ _id })));
    if (put.length === 0) return;
    const { refused } = await insertDocuments(rows, put, 'replace');
    assert.deepEqual(refused, []);
  };
}

async function openSets(t: TestContext): Promise<ModelSets> {
  const directory = await mkdtemp(join(MEMORY, 'sluice-sqlite-'));
  t.after(() => removeDirectory(directory));
  const slots = new Slots();
  // Some calls take several transactions, and the log loses changes before its readers had them.
  const store = await openSqlite({
    items: ITEM_COLLECTION,
    directory,
    slots,
    transactionRows: 5,
    mostChanges: 40,
  });
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
}

const ADAPTERS: readonly ModelAdapter[] = [
  { name: 'embedded store', part: 1, skip: false, open: openSets },
  ...WAYS.map(({ name, lane }) => ({
    ...{ name: `mongodb ${name}`, part: 1 / 2, skip: NO_MONGOD },
    open: async (t: TestContext) => {
      const { store, slots, client } = await openMongo(t, { lane });
      return { slots, sets: await mongoSets(store, client, 12) };
    },
  })),
];

onEach(ADAPTERS, changeFeedModelContract);
