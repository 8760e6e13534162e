import type { Document } from 'mongodb';
import type { Identity } from '../bookmark.ts';
import { UUID } from '../values/bson.ts';
import type { CommandOptions, MongoConnection } from './connection.ts';

export const MAJORITY = { w: 'majority', j: true, wtimeout: 60_000 };

/** For commands that change something, and for those that must see what was changed. */
export const ON_PRIMARY = { readPreference: 'primary' } as const;
export const PRIMARY_FIRST = { readPreference: 'primaryPreferred' } as const;

/** The command, which fails with error 361 when its collection is not the one of this identity. */
export function named<C extends Document>(command: C, identity: Identity | undefined): C | Document {
  return identity === undefined ? command : { ...command, collectionUUID: new UUID(identity) };
}

/** A find of the key of one row, of a collection of this identity and with these values. */
export function findOne(collection: string, identity?: Identity, filter?: Document): Document {
  const find = { find: collection, projection: { _id: 1 }, limit: 1, singleBatch: true };
  return named(filter ? { ...find, filter } : find, identity);
}

/** The documents of the first reply to a command. Rejects as MongoConnection.run does. */
export async function documentsOf(
  connection: MongoConnection,
  command: Document,
  options?: CommandOptions,
): Promise<readonly Document[]> {
  const { cursor } = await connection.run(command, options);
  return (cursor as { readonly firstBatch: readonly Document[] }).firstBatch;
}
