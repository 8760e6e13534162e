import { testMongoStore } from '../support/store/mongo/mongo.ts';
import { testsWith } from '../support/tests-with.ts';
import { userStoreContract } from './records.contract.ts';
import { storeContract } from './store.contract.ts';

storeContract(testsWith((t) => testMongoStore(t, { lane: false }), 'mongodb through the driver'));

/** Collections that another program made, without the clustered index that an own one has. */
storeContract(testsWith((t) => testMongoStore(t, { existing: {} }), 'mongodb, plain'));
userStoreContract(
  testsWith(async (t) => {
    const opened = await testMongoStore(t);
    await opened?.client.db().createCollection('users');
    return opened;
  }, 'mongodb, plain'),
);
