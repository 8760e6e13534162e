import type { TestContext } from 'node:test';
import { changeFeedContract, type OpenFeed } from './change-feed.contract.ts';
import { ANY_IDS, ITEM_IDS, VALUES } from './support/feed-ids.ts';
import { testLmdb } from './support/lmdb.ts';

changeFeedContract('items of lmdb', async (t: TestContext): Promise<OpenFeed> => {
  const { store, slots } = await testLmdb(t);
  return { rows: store.items, slots, field: 'category', values: VALUES, ids: ITEM_IDS };
});

changeFeedContract('a resource of lmdb', async (t: TestContext): Promise<OpenFeed> => {
  const { store, slots } = await testLmdb(t);
  const rows = await store.open({ name: 'rows', collection: 'rows', indexes: [['status']] });
  return { rows, slots, field: 'status', values: VALUES, ids: ANY_IDS };
});
