import { ITEM_COLLECTION } from '../../../src/resources/item-collection.ts';
import { openSqlite } from '../../../src/store/sqlite.ts';
import { connectMongo } from '../../../src/store/mongo.ts';
import { Slots } from '../../../src/store/slots.ts';
import type { Store } from '../../../src/store/store.ts';

/** Opens the store at a place, which is a MongoDB URI or a directory. */
export function openPlace(place: string): Promise<Store> {
  const slots = new Slots();
  if (!place.startsWith('mongodb://')) return openSqlite({ items: ITEM_COLLECTION, directory: place, slots });
  return connectMongo({
    items: ITEM_COLLECTION,
    uri: place,
    slots,
    manageIndexes: true,
    onWarning: (message) => console.error(message),
    onNotice: () => undefined,
  });
}
