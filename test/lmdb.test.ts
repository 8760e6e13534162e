import { storeContract } from './store.contract.ts';
import { testLmdb } from './support/lmdb.ts';

storeContract('lmdb', testLmdb);
