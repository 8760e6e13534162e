import { storeContract } from './store.contract.ts';
import { WAYS, testMongoStore } from '../support/mongo.ts';

// A collection that another program made, without the clustered index that an own collection has.
for (const { name, lane } of WAYS)
  storeContract(`mongodb ${name}, plain collection`, (t) => testMongoStore(t, { lane, existing: {} }));
