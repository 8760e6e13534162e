import type { Slots } from '../../../src/store/turns/slots.ts';
import type { ContractTest } from '../tests-with.ts';
import type { StoreWithItems } from './with-items.ts';

/** A new, empty store. The port has no delete, so the adapter's tests provide one. */
export interface OpenStore {
  readonly store: StoreWithItems;
  readonly slots: Slots;
  /** Deletes the item of this id (a value of the bson package, or a string), as another program might. */
  readonly remove: (id: unknown) => Promise<void>;
}

export type StoreTest = ContractTest<OpenStore>;
