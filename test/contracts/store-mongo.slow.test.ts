import { testMongoStore, WAYS } from '../support/store/mongo/mongo.ts';
import { testsWith } from '../support/tests-with.ts';
import { storeContract } from './store.contract.ts';

/** Collections that another program made, without the clustered index that an own one has. */
for (const { name, lane } of WAYS)
  storeContract(testsWith((t) => testMongoStore(t, { lane, existing: {} }), `mongodb ${name}, plain`));
