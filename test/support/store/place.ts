import { openSqlite } from '../../../src/store/sqlite/sqlite-store.ts';
import { connectMongo } from '../../../src/store/mongo/mongo-store.ts';
import { Slots } from '../../../src/store/turns/slots.ts';
import { withItems, type StoreWithItems } from './with-items.ts';

/** Opens the store at a place, which is a MongoDB URI or a directory. */
export async function openPlace(place: string): Promise<StoreWithItems> {
  const slots = new Slots();
  if (!place.startsWith('mongodb://')) return withItems(await openSqlite({ directory: place, slots }));
  const store = await connectMongo({
    uri: place,
    slots,
    manageIndexes: true,
    onWarning: (message) => console.error(message),
    onNotice: () => undefined,
  });
  return withItems(store);
}
