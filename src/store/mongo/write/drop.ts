import { CommandRefusal } from '../../../base/errors.ts';
import { KEY } from '../../bookmark.ts';
import { MAJORITY, ON_PRIMARY } from '../commands.ts';
import type { MongoConnection } from '../connection.ts';
import { translate } from '../errors.ts';
import { listIndexes } from '../collection/index-list.ts';
import { refusalOf } from '../collection/make-indexes.ts';
import { ImportLease } from './import-lease.ts';

/** See OwnedCollection.drop. */
export async function dropCollection(connection: MongoConnection, collection: string): Promise<void> {
  await ImportLease.assertNone(connection, collection);
  try {
    await connection.run({ drop: collection, writeConcern: MAJORITY }, ON_PRIMARY);
  } catch (error) {
    throw refusalOf(error, `drop the collection ${connection.database}.${collection}`);
  }
}

/** See OwnedCollection.rename. */
export async function renameCollection(connection: MongoConnection, from: string, to: string): Promise<void> {
  const { client, database } = connection;
  const names = { renameCollection: `${database}.${from}`, to: `${database}.${to}` };
  await ImportLease.assertNone(connection, from);
  try {
    await client.db('admin').command({ ...names, writeConcern: MAJORITY });
  } catch (error) {
    throw refusalOf(translate(error), `rename the collection ${database}.${from}`);
  }
}

/** See OwnedCollection.removeIndex. */
export async function removeIndex(
  connection: MongoConnection,
  collection: string,
  paths: readonly string[],
): Promise<void> {
  const fields = [...paths, KEY].join('\0');
  const listed = await listIndexes(connection, collection);
  const found = listed.find(({ spec }) => Object.keys(spec.key).join('\0') === fields);
  if (!found) throw new CommandRefusal(`${collection} has no index of ${paths.join(', ')}.`);
  try {
    const command = { dropIndexes: collection, index: found.spec.name, writeConcern: MAJORITY };
    await connection.run(command, ON_PRIMARY);
  } catch (error) {
    throw refusalOf(error, `drop the index ${found.spec.name}`);
  }
}
