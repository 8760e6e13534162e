import { CommandRefusal } from '../../errors.ts';
import type { OwnedCollection } from '../store.ts';
import { MAJORITY, ON_PRIMARY } from './commands.ts';
import { describeCollection } from './create-collection.ts';
import type { MongoConnection } from './connection.ts';
import { CODES, MongoRefusal, serverCodeOf } from './errors.ts';
import { refusalOf } from './make-indexes.ts';
import type { OpenCollection } from './open-collection.ts';

/** See Store.make. `open` opens the collection once it exists. */
export async function makeCollection(
  connection: MongoConnection,
  collection: string,
  open: () => Promise<OpenCollection>,
  report: (line: string) => void,
): Promise<OwnedCollection> {
  await connection.connect();
  if (await create(connection, collection))
    report(`created the collection ${connection.database}.${collection}`);
  const { rows, layouts } = await open().catch((error: unknown) => {
    throw error instanceof MongoRefusal ? new CommandRefusal(error.message, { cause: error }) : error;
  });
  await layouts.layout();
  return rows;
}

/** Creates a collection. False when there is one. */
async function create(connection: MongoConnection, collection: string): Promise<boolean> {
  if (await describeCollection(connection, collection)) return false;
  try {
    await connection.run({ create: collection, writeConcern: MAJORITY }, ON_PRIMARY);
    return true;
  } catch (error) {
    if (serverCodeOf(error) === CODES.namespaceExists) return false;
    throw refusalOf(error, `create the collection ${connection.database}.${collection}`);
  }
}
