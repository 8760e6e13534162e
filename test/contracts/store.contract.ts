import type { StoreTest } from '../support/store/open-store.ts';
import { countContract, splitContract } from './store.count.contract.ts';
import { fillContract } from './store.fill.contract.ts';
import { resumeContract } from './store.resume.contract.ts';
import { sizeContract } from './store.size.contract.ts';
import { snapshotContract, stateContract } from './store.snapshot.contract.ts';
import { writeContract } from './store.write.contract.ts';

/** Every promise of src/store/store.ts, tested on one adapter. */
export function storeContract(test: StoreTest): void {
  resumeContract(test);
  sizeContract(test);
  writeContract(test);
  fillContract(test);
  countContract(test);
  splitContract(test);
  snapshotContract(test);
  stateContract(test);
}
