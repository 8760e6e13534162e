import type { TestContext } from 'node:test';
import { changeFeedContract, type OpenFeed } from './changes.contract.ts';
import { ANY_IDS, ITEM_IDS, VALUES } from '../support/feed-ids.ts';
import { testSqlite } from '../support/sqlite.ts';

changeFeedContract('items of sqlite', async (t: TestContext): Promise<OpenFeed> => {
  const { store, slots } = await testSqlite(t);
  return { rows: store.items, slots, field: 'category', values: VALUES, ids: ITEM_IDS };
});

changeFeedContract('a resource of sqlite', async (t: TestContext): Promise<OpenFeed> => {
  const { store, slots } = await testSqlite(t);
  const rows = await store.open({ name: 'rows', collection: 'rows', indexes: [['status']] });
  return { rows, slots, field: 'status', values: VALUES, ids: ANY_IDS };
});
