import type { Document } from 'mongodb';
import { CODES, MongoRefusal, serverCodeOf, translate } from './errors.ts';
import { MAJORITY, ON_PRIMARY } from './commands.ts';
import { describeCollection, hasRows } from './create-collection.ts';
import type { MongoConnection } from './connection.ts';
import { listIndexes } from './index-list.ts';
import { createIndexes } from './make-indexes.ts';

/**
 * Replaces a collection by an empty one with the same options and indexes. An empty collection is made beside it and
 * renamed over it, so that readers find either the old collection or the new one, and never none. Rejects with
 * MongoRefusal when the collection cannot be replaced, and then leaves it as it is.
 */
export async function replaceByEmpty(connection: MongoConnection, collection: string): Promise<void> {
  const description = await describeCollection(connection, collection);
  if (!description) throw new MongoRefusal(`The collection '${collection}' is missing.`);
  const empty = `${collection}.sluice-empty`;
  await removeLeftover(connection, empty);
  const indexes = (await listIndexes(connection, collection))
    .map(({ spec }) => spec)
    .filter(({ key }) => Object.keys(key).join() !== '_id'); // a new collection has that by itself
  await connection.run(
    { create: empty, ...(description.options as Document), writeConcern: MAJORITY },
    ON_PRIMARY,
  );
  try {
    if (indexes.length > 0) await createIndexes(connection, empty, indexes);
    await rename(connection, empty, collection);
  } catch (error) {
    await drop(connection, empty).catch(() => undefined); // the next attempt removes it, and this error says more
    throw error;
  }
}

/** An import that was killed at the wrong moment leaves the empty collection. One with documents is not ours. */
async function removeLeftover(connection: MongoConnection, name: string): Promise<void> {
  if (!(await describeCollection(connection, name))) return;
  if (await hasRows(connection, name))
    throw new MongoRefusal(
      `The collection '${name}' has documents, but its name is needed to empty the other one. Rename or drop it.`,
    );
  await drop(connection, name);
}

async function drop(connection: MongoConnection, name: string): Promise<void> {
  try {
    await connection.run({ drop: name, writeConcern: MAJORITY }, ON_PRIMARY);
  } catch (error) {
    if (serverCodeOf(error) !== CODES.namespaceNotFound) throw error; // it was renamed, or is gone
  }
}

async function rename(connection: MongoConnection, from: string, to: string): Promise<void> {
  const { client, database } = connection;
  const command = {
    renameCollection: `${database}.${from}`,
    to: `${database}.${to}`,
    dropTarget: true,
    writeConcern: MAJORITY,
  };
  try {
    await client.db('admin').command(command);
  } catch (error) {
    throw translate(error);
  }
}
