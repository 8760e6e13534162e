import type { Document } from 'mongodb';
import { MAJORITY } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { CODES, serverCodeOf } from './errors.ts';
import { listIndexes } from './index-list.ts';
import { createIndexes } from './missing-indexes.ts';

const ON_PRIMARY = { readPreference: 'primary' } as const;
/** What the description of an index without options has. */
const PLAIN: readonly string[] = ['v', 'key', 'name', 'ns'];

/** Makes the indexes that were dropped. It may take any time. */
export type MakeIndexes = () => Promise<void>;

/**
 * Drops indexes of an empty collection, to be made at once when it has its rows: that costs less than to keep them for
 * each row. Only indexes are dropped that the next start would make if this process were killed: those of `wanted` (the
 * paths of each), without options. Resolves with null when there is none, when the collection has rows, or when this user may not.
 */
export async function postponeIndexes(
  connection: MongoConnection,
  collection: string,
  wanted: readonly (readonly string[])[],
): Promise<MakeIndexes | null> {
  const { cursor } = await connection.run({ find: collection, limit: 1, projection: { _id: 1 } }, ON_PRIMARY);
  if ((cursor as { firstBatch: Document[] }).firstBatch.length > 0) return null;
  const keys = wanted.map((paths) => JSON.stringify(paths.map((path) => [path, 1])));
  const indexes = (await listIndexes(connection, collection))
    .filter(({ spec }) => keys.includes(JSON.stringify(Object.entries(spec.key))))
    .filter(({ spec }) => Object.keys(spec).every((option) => PLAIN.includes(option)))
    .map(({ spec: { key, name } }) => ({ key, name }));
  if (indexes.length === 0) return null;
  try {
    const names = indexes.map(({ name }) => name);
    await connection.run({ dropIndexes: collection, index: names, writeConcern: MAJORITY }, ON_PRIMARY);
  } catch (error) {
    if (serverCodeOf(error) === CODES.unauthorized) return null;
    throw error;
  }
  return () => createIndexes(connection, collection, indexes);
}
