import { storeContract } from './store.contract.ts';
import { testSqlite } from '../support/sqlite.ts';

storeContract('sqlite', testSqlite);
