import { onEach, SQLITE } from './adapters.ts';
import { storeContract } from './store.contract.ts';

onEach(SQLITE, storeContract);
