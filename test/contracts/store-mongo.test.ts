import { testMongoStore, WAYS } from '../support/store/mongo/mongo.ts';
import { testsWith } from '../support/tests-with.ts';
import { storeContract } from './store.contract.ts';

for (const { name, lane } of WAYS)
  storeContract(testsWith((t) => testMongoStore(t, { lane }), `mongodb ${name}`));
