import { changeFeedModelContract } from './changes.model.contract.ts';
import { mongoSets } from '../support/model-mongo.ts';
import { testMongoStore, WAYS } from '../support/mongo.ts';

for (const { name, lane } of WAYS)
  changeFeedModelContract(`mongodb ${name}`, 1 / 2, async (t) => {
    const opened = await testMongoStore(t, { lane });
    if (!opened) return null;
    const { store, slots, client } = opened;
    return { slots, sets: await mongoSets(store, client, 12) };
  });
