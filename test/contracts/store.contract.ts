import type { TestContext } from 'node:test';
import type { Slots } from '../../src/store/slots.ts';
import type { Store } from '../../src/store/store.ts';
import { chainContract } from './store.chain.contract.ts';
import { countContract } from './store.count.contract.ts';
import { modelContract } from './store.model.contract.ts';
import { resumeContract } from './store.resume.contract.ts';
import { sizeContract } from './store.size.contract.ts';
import { snapshotContract } from './store.snapshot.contract.ts';
import { splitContract } from './store.split.contract.ts';
import { writeContract } from './store.write.contract.ts';

/** A new, empty store. The port has no delete, so the adapter's tests provide one. */
export interface OpenStore {
  readonly store: Store;
  readonly slots: Slots;
  /** Deletes the item of this id (a value of the bson package, or a string), as another program might. */
  readonly remove: (id: unknown) => Promise<void>;
}

/** Opens a store and cleans up by `t.after`. Null when the test was skipped with its reason. */
export type OpenForTest = (t: TestContext) => Promise<OpenStore | null>;

/** Every promise of src/store/store.ts, tested on one implementation. */
export function storeContract(name: string, open: OpenForTest): void {
  chainContract(name, open);
  resumeContract(name, open);
  sizeContract(name, open);
  writeContract(name, open);
  countContract(name, open);
  splitContract(name, open);
  snapshotContract(name, open);
  modelContract(name, open);
}
