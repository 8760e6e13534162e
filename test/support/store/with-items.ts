import { ITEM_COLLECTION } from '../../../src/resources/item-collection.ts';
import type { OwnedCollection, Store } from '../../../src/store/store.ts';
import { withOverrides } from './with-overrides.ts';

/** A store with the collection of items, which most tests read and write. */
export interface StoreWithItems extends Store {
  readonly items: OwnedCollection;
}

/** Opens the items of a store as a server does. Closes the store when that fails. */
export async function withItems(store: Store): Promise<StoreWithItems> {
  try {
    const items = await store.open(ITEM_COLLECTION);
    return withThese(store, () => items);
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** A store whose items someone else opens. */
export function withThese(store: Store, items: () => OwnedCollection): StoreWithItems {
  return Object.defineProperty(withOverrides(store, {}), 'items', { get: items }) as StoreWithItems;
}

/** A store whose items do some things in another way, whoever opens them. */
export function aroundItems(store: Store, own: (items: OwnedCollection) => Partial<OwnedCollection>): Store {
  return withOverrides(store, {
    open: async (declaration, may) => {
      const rows = await store.open(declaration, may);
      return declaration.collection === ITEM_COLLECTION.collection ? withOverrides(rows, own(rows)) : rows;
    },
  });
}
