import { openItems, type OpenResource } from '../../../src/resources/open.ts';
import type { StreamReader } from '../../../src/store/readers.ts';
import type { RowReader, Collection, Store } from '../../../src/store/store.ts';

/** The items of a store as a resource. By default chains read the rows themselves. */
export function itemsOf(
  store: Pick<Store, 'items' | 'keepsDeclarations'>,
  streamsOf: (rows: Collection) => StreamReader = (rows) => readerOf(rows, rows),
): OpenResource {
  return openItems(store.items, store, streamsOf);
}

/** A reader of streams that does not retry. */
export function readerOf(chains: RowReader, rows: Pick<Collection, 'read'>): StreamReader {
  return {
    read: (...call) => chains.read(...call),
    begin: (...call) => rows.read(...call),
  };
}
