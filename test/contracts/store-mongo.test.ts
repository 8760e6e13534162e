import { testMongoStore } from '../support/store/mongo/mongo.ts';
import { testsWith } from '../support/tests-with.ts';
import { storeContract } from './store.contract.ts';

storeContract(testsWith(testMongoStore, 'mongodb'));
