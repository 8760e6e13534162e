import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { testsWith } from '../support/tests-with.ts';
import { storeContract } from './store.contract.ts';

storeContract(testsWith(testSqlite, 'sqlite'));
