import { storeContract } from './store.contract.ts';
import { testMongoStore } from './support/mongo.ts';

storeContract('mongodb', testMongoStore);
storeContract('mongodb, plain collection', (t) => testMongoStore(t, { existing: {} }));
