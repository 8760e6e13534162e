import { resourceOf, type OpenResource } from '../../../src/resources/open.ts';
import { locatedOwn } from '../../../src/resources/locate.ts';
import { itemsOf as itemsResource } from '../../../src/resources/own.ts';
import type { StreamedRows, StreamReader } from '../../../src/store/turns/readers.ts';
import type { RowReader } from '../../../src/store/store.ts';
import { Slots } from '../../../src/store/turns/slots.ts';
import type { StoreWithItems } from '../store/with-items.ts';

/** The items of a store as a resource. By default chains read the rows themselves. */
export function itemsOf(
  store: Pick<StoreWithItems, 'items' | 'name'>,
  streamsOf: (rows: StreamedRows) => StreamReader = (rows) => readerOf(rows, rows),
): OpenResource {
  const parts = { store: store.name, streamsOf, slots: new Slots() };
  return { resource: resourceOf(locatedOwn(itemsResource(undefined)), store.items, parts) };
}

/** A reader of streams that does not retry. */
export function readerOf(chains: RowReader, rows: Pick<RowReader, 'read'>): StreamReader {
  return {
    read: (...call) => chains.read(...call),
    begin: (...call) => rows.read(...call),
  };
}
