import { storeContract } from './store.contract.ts';
import { WAYS, testMongoStore } from '../support/mongo.ts';

for (const { name, lane } of WAYS) storeContract(`mongodb ${name}`, (t) => testMongoStore(t, { lane }));
