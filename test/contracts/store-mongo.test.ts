import { MONGO, onEach } from './adapters.ts';
import { storeContract } from './store.contract.ts';

onEach(MONGO, storeContract);
