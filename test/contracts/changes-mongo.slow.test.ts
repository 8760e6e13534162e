import { changeFeedContract } from './changes.contract.ts';
import { MONGO_IDS, VALUES } from '../support/feed-ids.ts';
import { testMongoStore } from '../support/mongo.ts';

/** Without null, which the driver replaces on insert. */
const IDS = MONGO_IDS.filter((id) => id !== null);

changeFeedContract('items of mongodb', async (t) => {
  const opened = await testMongoStore(t);
  if (!opened) return null;
  const { store, slots } = opened;
  return { rows: store.items, slots, field: 'category', values: VALUES, ids: IDS };
});

changeFeedContract('a resource of mongodb through the driver', async (t) => {
  const opened = await testMongoStore(t, { lane: false });
  if (!opened) return null;
  const { store, slots, client } = opened;
  await client.db().createCollection('rows');
  const rows = await store.open({ name: 'rows', collection: 'rows', indexes: [['status']] });
  return { rows, slots, field: 'status', values: VALUES, ids: IDS };
});
