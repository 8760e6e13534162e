import type { Document } from 'mongodb';
import { AppError } from '../../../base/errors.ts';
import { CODES, MongoRefusal, serverCodeOf, translate } from '../errors.ts';
import { MAJORITY, ON_PRIMARY } from '../commands.ts';
import { describeCollection, hasRows } from '../collection/create-collection.ts';
import type { MongoConnection } from '../connection.ts';
import { listIndexes } from '../collection/index-list.ts';
import { createIndexes } from '../collection/make-indexes.ts';

/**
 * Replaces a collection by an empty one with the same options and indexes. An empty collection is made beside it and
 * renamed over it, so that readers find either the old collection or the new one, and never none. Rejects with
 * MongoRefusal when the collection cannot be replaced, and then leaves it as it is.
 */
export async function replaceByEmpty(connection: MongoConnection, collection: string): Promise<void> {
  const side = `${collection}.sluice-empty`;
  await removeLeftover(connection, side);
  await replace(connection, collection, side, () => Promise.resolve());
}

/**
 * The same with rows: `fill` writes them into the collection that it is called with. Its name belongs to imports, and the
 * caller has the lease to it. What a killed import left in it is dropped.
 */
export async function replaceByFilled(
  connection: MongoConnection,
  collection: string,
  fill: (side: string) => Promise<void>,
): Promise<void> {
  const side = `${collection}.sluice-import`;
  await drop(connection, side);
  await replace(connection, collection, side, fill);
}

/** Makes the unique indexes before the rows, so that they refuse single rows, and the others behind them, which costs less. */
async function replace(
  connection: MongoConnection,
  collection: string,
  side: string,
  fill: (side: string) => Promise<void>,
): Promise<void> {
  const description = await describeCollection(connection, collection);
  if (!description) throw new MongoRefusal(`The collection '${collection}' is missing.`);
  const indexes = (await listIndexes(connection, collection))
    .map(({ spec }) => spec)
    .filter(({ key }) => Object.keys(key).join() !== '_id'); // a new collection has that by itself
  const make = async (isUnique: boolean) => {
    const some = indexes.filter(({ unique }: Document) => (unique === true) === isUnique);
    if (some.length > 0) await createIndexes(connection, side, some);
  };
  await connection.run(
    { create: side, ...(description.options as Document), writeConcern: MAJORITY },
    ON_PRIMARY,
  );
  const made = await uuidOf(connection, side);
  try {
    await make(true);
    await fill(side);
    await make(false);
    // An insert makes a missing collection: it would have neither the options nor all rows.
    if ((await uuidOf(connection, side)) !== made)
      throw new MongoRefusal(`The collection '${side}' was dropped while an import filled it.`);
    await rename(connection, side, collection);
  } catch (error) {
    await drop(connection, side).catch(() => undefined); // the next attempt removes it, and this error says more
    throw error;
  }
}

async function uuidOf(connection: MongoConnection, name: string): Promise<string> {
  const { info } = (await describeCollection(connection, name)) ?? {};
  return String((info as Document | undefined)?.uuid);
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
    const cause = error instanceof AppError ? error.cause : error; // it counts as one of a server that is away
    if (serverCodeOf(cause) !== CODES.namespaceNotFound) throw error; // it was renamed, or is gone
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
