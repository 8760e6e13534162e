import type { Document } from 'mongodb';
import { storeUnavailable } from '../../../base/errors.ts';
import { documentsOf, findOne, MAJORITY, ON_PRIMARY, PRIMARY_FIRST } from '../commands.ts';
import type { MongoConnection } from '../connection.ts';
import { CODES, MongoRefusal, serverCodeOf } from '../errors.ts';
import type { Creation, Description } from '../../collection.ts';

/** What reads need to know about a collection: how it is stored, its UUID, which reads name (`identity`), and its indexes. */
export interface Layout extends Description {
  readonly clustered: boolean;
  readonly sharded: boolean;
  /** Why indexes that the declaration wants cannot be used, although others can: a sentence each. */
  readonly faults: readonly string[];
}

export interface LayoutOptions {
  readonly collection: string;
  /** The fields of the indexes that are wanted. */
  readonly indexes: readonly (readonly string[])[];
  /** How the collection is made. Absent: it is never made. */
  readonly create?: Creation | undefined;
  /** Whether a missing collection is one without rows, to be made later. */
  readonly isToCome?: () => boolean;
  /** Whether to create what is missing. False: it is only reported. */
  readonly manage: boolean;
  /** Why nothing is created, as the end of a sentence. Default: the setting that forbids it. */
  readonly unmanaged?: string;
  /** False: nothing is created on a collection that exists without the validator of `create`, as that of another program. */
  readonly adopts?: boolean;
  /** What this server keeps in the collection, in the plural: it is refused when it has other documents. Absent: any rows. */
  readonly records?: string;
  readonly onWarning: (message: string) => void;
  readonly onNotice?: ((message: string) => void) | undefined;
  /** Whether a look also warns about the kind of server. */
  readonly warnsOfServer?: boolean;
}

/** The collection is made by the first change of a record. Until then there are no records. */
export class NotMadeYet extends Error {}

/**
 * Makes a missing collection, and resolves with its description. Rejects with MongoRefusal when it may not: because its
 * declaration does not say how, or because it was served before. It is not made again without its operator's knowledge.
 */
export async function makeMissing(
  connection: MongoConnection,
  options: LayoutOptions,
  wasServed: boolean,
): Promise<Document> {
  const { collection, create, isToCome } = options;
  const gone = { brief: `The collection '${collection}' is missing.`, isGone: true };
  if (wasServed)
    throw new MongoRefusal(
      `The collection '${collection}' is missing: it was dropped or renamed while the server ran. The server does not create it again. It serves the next collection of this name as soon as there is one.`,
      gone,
    );
  if (isToCome?.()) throw new NotMadeYet(collection);
  const name = `${connection.database}.${collection}`;
  if (!create)
    throw new MongoRefusal(`The collection '${name}' does not exist. The server does not create it.`, gone);
  await createCollection(connection, options, create);
  const made = await describeCollection(connection, collection);
  if (!made)
    throw storeUnavailable(new Error(`the collection '${collection}' was created, but is not visible yet`));
  return made;
}

/** The description of a collection from `listCollections`. Null when there is none. */
export async function describeCollection(
  connection: MongoConnection,
  name: string,
): Promise<Document | null> {
  const [found] = await documentsOf(connection, { listCollections: 1, filter: { name } }, PRIMARY_FIRST);
  return found ?? null;
}

/** Creates a collection. Rejects with MongoRefusal when this is not allowed. */
async function createCollection(
  connection: MongoConnection,
  { collection, manage, unmanaged = UNMANAGED, onNotice }: LayoutOptions,
  { clustered, validator }: Creation,
): Promise<void> {
  if (!manage) throw new MongoRefusal(`The collection '${collection}' is missing, and ${unmanaged}.`);
  const clusteredIndex = { key: { _id: 1 }, unique: true };
  const options = { ...(clustered && { clusteredIndex }), validator, writeConcern: MAJORITY };
  try {
    await connection.run({ create: collection, ...options }, ON_PRIMARY);
    onNotice?.(`The server has created the collection '${connection.database}.${collection}'.`);
  } catch (error) {
    if (serverCodeOf(error) === CODES.namespaceExists) return; // another process created it first
    if (serverCodeOf(error) !== CODES.unauthorized) throw error;
    throw new MongoRefusal(
      `The collection '${collection}' is missing, and the MongoDB user has no permission to create it.`,
      { cause: error },
    );
  }
}

/** Why nothing is created, unless the options say more. */
export const UNMANAGED = 'MONGODB_MANAGE_INDEXES=false forbids the server to create it';

export async function hasRows(connection: MongoConnection, name: string): Promise<boolean> {
  return (await documentsOf(connection, findOne(name), ON_PRIMARY)).length > 0;
}
