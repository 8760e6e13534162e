import type { TestContext } from 'node:test';
import { ANY_IDS, ITEM_IDS, MONGO_IDS, VALUES } from '../support/store/feed-ids.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { NO_MONGOD, onEach, openMongo, type Adapter, type OpenStore } from './adapters.ts';
import { changeFeedContract, type OpenFeed } from './changes.contract.ts';

/** Without null, which the driver replaces on insert. */
const DRIVER_IDS = MONGO_IDS.filter((id) => id !== null);

function itemsOf({ store, slots }: OpenStore, ids: readonly unknown[]): OpenFeed {
  return { rows: store.items, slots, field: 'category', values: VALUES, ids };
}

async function resourceOf({ store, slots }: OpenStore, ids: readonly unknown[]): Promise<OpenFeed> {
  const rows = await store.open({ name: 'rows', collection: 'rows', indexes: [['status']] });
  return { rows, slots, field: 'status', values: VALUES, ids };
}

const FEEDS: readonly Adapter<OpenFeed>[] = [
  { name: 'items of sqlite', skip: false, open: async (t) => itemsOf(await testSqlite(t), ITEM_IDS) },
  { name: 'a resource of sqlite', skip: false, open: async (t) => resourceOf(await testSqlite(t), ANY_IDS) },
  { name: 'items of mongodb', skip: NO_MONGOD, open: async (t) => itemsOf(await openMongo(t), DRIVER_IDS) },
  {
    name: 'a resource of mongodb through the driver',
    skip: NO_MONGOD,
    open: async (t: TestContext) => {
      const opened = await openMongo(t, { lane: false });
      await opened.client.db().createCollection('rows');
      return resourceOf(opened, DRIVER_IDS);
    },
  },
];

onEach(FEEDS, changeFeedContract);
