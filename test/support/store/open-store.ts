import type { Slots } from '../../../src/store/slots.ts';
import type { Store } from '../../../src/store/store.ts';
import type { ContractTest } from '../tests-with.ts';

/** A new, empty store. The port has no delete, so the adapter's tests provide one. */
export interface OpenStore {
  readonly store: Store;
  readonly slots: Slots;
  /** Deletes the item of this id (a value of the bson package, or a string), as another program might. */
  readonly remove: (id: unknown) => Promise<void>;
}

export type StoreTest = ContractTest<OpenStore>;
