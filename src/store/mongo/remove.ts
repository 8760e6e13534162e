import { MongoServerError } from 'mongodb';
import type { Bookmark } from '../bookmark.ts';
import { collectionReplaced } from '../../errors.ts';
import type { MongoConnection } from './connection.ts';
import type { IndexWatch } from './index-watch.ts';
import { deletion, writeRaw } from './raw-write.ts';

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
  const { rows, errors } = await writeRaw(connection, collection, 'delete', keys.map(deletion));
  const [error] = errors;
  if (error) throw new MongoServerError({ ...error });
  if ((await watch.present()) !== identity) throw collectionReplaced();
  return rows;
}
