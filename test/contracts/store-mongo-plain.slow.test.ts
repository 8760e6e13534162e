import { onEach, PLAIN_MONGO } from './adapters.ts';
import { storeContract } from './store.contract.ts';

onEach(PLAIN_MONGO, storeContract);
