import type { CollectionEntry } from '../../store.ts';
import { documentsOf, MAJORITY, ON_PRIMARY, PRIMARY_FIRST } from '../commands.ts';
import type { MongoConnection } from '../connection.ts';
import { CODES, MongoRefusal, serverCodeOf } from '../errors.ts';
import { ownCollections, whyRefused } from './discovery.ts';
import { describeCollection } from './create-collection.ts';
import { refusalOf } from './make-indexes.ts';

/** Makes a collection with no options. Resolves with false when there is one. */
export async function createCollection(connection: MongoConnection, collection: string): Promise<boolean> {
  if (await describeCollection(connection, collection)) return false;
  try {
    await connection.run({ create: collection, writeConcern: MAJORITY }, ON_PRIMARY);
    return true;
  } catch (error) {
    if (serverCodeOf(error) === CODES.namespaceExists) return false;
    throw refusalOf(error, `create the collection ${connection.database}.${collection}`);
  }
}

export async function listCollections(
  connection: MongoConnection,
  prefix?: string,
): Promise<readonly CollectionEntry[]> {
  const { database } = connection;
  await connection.connect(); // again, if the server was away at the start
  const command = { listCollections: 1, cursor: { batchSize: 100_000 } };
  return (await documentsOf(connection, command, PRIMARY_FIRST).catch(unlessRefused(database)))
    .map((one): CollectionEntry => {
      const collection = String(one.name);
      const refused = whyOwn(collection, prefix) ?? whyRefused(database, one);
      return { database, collection, ...(refused !== undefined && { refused }) };
    })
    .sort((a, b) => (a.collection < b.collection ? -1 : 1));
}

/** The error's text has the whole command, with ids of sessions: the operator needs the right and the database. */
function unlessRefused(database: string) {
  return (error: unknown): never => {
    if (serverCodeOf(error) !== CODES.unauthorized) throw error;
    const detail = `MongoDB refuses this user: it may not run listCollections on the database ${database}, without which no collection can be served.`;
    throw new MongoRefusal(detail, { cause: error });
  };
}

/** Why a collection of this name in the database of the server is not served, as the end of a sentence. */
export function whyOwn(collection: string, prefix: string | undefined): string | undefined {
  return ownCollections(prefix).includes(collection)
    ? 'this server keeps its own records there, unless MONGODB_PREFIX gives them other names'
    : undefined;
}
