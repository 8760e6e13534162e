import { MongoBulkWriteError } from 'mongodb';
import type { Bookmark } from '../bookmark.ts';
import { collectionReplaced, storeUnavailable } from '../../errors.ts';
import type { MongoConnection } from './connection.ts';
import type { IndexWatch } from './index-watch.ts';
import { commandKey } from './key.ts';

/** Removals in one command. */
const MOST = 1_000;

/**
 * Removes the rows of these keys (bookmarks `{_id}`). Resolves with their number when a majority has removed them.
 * Rejects with `store-unavailable` when that is not certain: any part of them may have been removed. A write cannot name
 * the identity of its collection, so it is checked before and after.
 */
export async function removeRows(
  connection: MongoConnection,
  collection: string,
  watch: IndexWatch,
  keys: readonly Bookmark[],
): Promise<number> {
  const identity = await watch.present();
  // One condition each: `$in` on the key of a clustered collection reads all rows between the lowest and the highest.
  const operations = keys.map((key) => ({
    deleteOne: { filter: { _id: { $eq: commandKey(key)._id as never } } },
  }));
  let removed = 0;
  for (let at = 0; at < operations.length; at += MOST) {
    const part = operations.slice(at, at + MOST);
    removed += await connection.write(async (rows, options) => {
      try {
        return (await rows.bulkWrite(part, options)).deletedCount;
      } catch (error) {
        const isUnconfirmed = error instanceof MongoBulkWriteError && error.result.getWriteConcernError();
        throw isUnconfirmed ? storeUnavailable(error) : error;
      }
    }, collection);
  }
  if ((await watch.present()) !== identity) throw collectionReplaced();
  return removed;
}
