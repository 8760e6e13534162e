import type { Document } from 'mongodb';
import { MAJORITY } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { CODES, serverCodeOf } from './errors.ts';

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
  const reply = await connection.run({ listIndexes: collection, cursor: { batchSize: 1_000 } }, ON_PRIMARY);
  const keys = wanted.map((paths) => JSON.stringify(paths.map((path) => [path, 1])));
  const indexes = (reply.cursor as { firstBatch: Document[] }).firstBatch
    .filter((index) => keys.includes(JSON.stringify(Object.entries(index.key as object))))
    .filter((index) => Object.keys(index).every((option) => PLAIN.includes(option)))
    .map(({ key, name }) => ({ key: key as Document, name: String(name) }));
  if (indexes.length === 0) return null;
  try {
    const names = indexes.map(({ name }) => name);
    await connection.run({ dropIndexes: collection, index: names, writeConcern: MAJORITY }, ON_PRIMARY);
  } catch (error) {
    if (serverCodeOf(error) === CODES.unauthorized) return null;
    throw error;
  }
  return async () => {
    const command = { createIndexes: collection, indexes, writeConcern: MAJORITY };
    await connection.run(command, { ...ON_PRIMARY, unlimited: true });
  };
}
