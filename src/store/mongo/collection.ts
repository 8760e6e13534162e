import type { Document } from 'mongodb';
import { storeUnavailable } from '../../errors.ts';
import type { MongoConnection } from './connection.ts';
import type { Identity } from '../bookmark.ts';
import type { Index } from '../indexes.ts';
import { CODES, MongoRefusal, serverCodeOf, type ForeignServer } from './errors.ts';
import type { Creation } from '../collection.ts';
import type { IndexPaths } from './plan.ts';
import type { ServerKind } from './server.ts';

/**
 * What reads need to know about a collection: how it is stored, and the names of its indexes. Reads hint an index by
 * its name only.
 */
export interface Layout {
  readonly clustered: boolean;
  readonly sharded: boolean;
  /** The collection's UUID, which reads name. */
  readonly identity: Identity | undefined;
  readonly indexes: ReadonlyMap<IndexPaths, string>;
  /** What `listIndexes` says of each, as text. It changes when another index takes the place. */
  readonly specs: ReadonlyMap<IndexPaths, string>;
  /** Why indexes that the declaration wants cannot be used, although others can: a sentence each. */
  readonly faults: ReadonlyMap<IndexPaths, string>;
  /** The indexes that the declaration wants. */
  readonly wanted: readonly IndexPaths[];
  /** Every index of the collection, also those that no plan may use. */
  readonly found: readonly Index[];
}

export interface SetupOptions {
  readonly collection: string;
  /** Whether to create what is missing. False: it is only reported. */
  readonly manage: boolean;
  /** Why nothing is created, as the end of a sentence. Default: the setting that forbids it. */
  readonly unmanaged?: string;
  readonly onWarning: (message: string) => void;
  readonly onNotice?: ((message: string) => void) | undefined;
  /** Called when the server turns out to be one that reads cannot rely on. */
  readonly onForeign?: ((error: ForeignServer) => void) | undefined;
  /** Whether setup also warns about the kind of server. */
  readonly tellsServer?: boolean;
}

/** The task of one setup: the options, the kind of server, and whether the collection was served before. */
export interface SetupTask extends SetupOptions {
  readonly server: ServerKind;
  /**
   * Whether the collection was served before. If so, a missing collection is not recreated without its operator's
   * knowledge, and an unusable index makes only the reads that need it fail.
   */
  readonly isServing: boolean;
}

/**
 * The description of a collection. Makes it when it is missing, was not served before and its declaration says how.
 * Rejects with MongoRefusal otherwise.
 */
export async function ensureCollection(
  connection: MongoConnection,
  task: SetupTask,
  create: Creation | undefined,
): Promise<Document> {
  const { collection, isServing } = task;
  const existing = await describeCollection(connection, collection);
  if (existing) return existing;
  const brief = `The collection '${collection}' is missing.`;
  if (isServing)
    throw new MongoRefusal(
      `The collection '${collection}' is missing: it was dropped or renamed while the server ran. The server does not create it again. It serves the next collection of this name as soon as there is one.`,
      { brief, isGone: true },
    );
  const name = `${connection.database}.${collection}`;
  if (!create)
    throw new MongoRefusal(`The collection '${name}' does not exist. The server does not create it.`, {
      brief,
      isGone: true,
    });
  await createCollection(connection, task, create);
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
  const { cursor } = await connection.run(
    { listCollections: 1, filter: { name } },
    { readPreference: 'primaryPreferred' },
  );
  const [found] = (cursor as { firstBatch: Document[] }).firstBatch;
  return found ?? null;
}

/** Creates a collection. Rejects with MongoRefusal when this is not allowed. */
async function createCollection(
  connection: MongoConnection,
  { collection, manage, unmanaged = UNMANAGED, onNotice }: SetupOptions,
  { clustered, validator }: Creation,
): Promise<void> {
  if (!manage) throw new MongoRefusal(`The collection '${collection}' is missing, and ${unmanaged}.`);
  const clusteredIndex = { key: { _id: 1 }, unique: true };
  const options = { ...(clustered && { clusteredIndex }), validator, writeConcern: MAJORITY };
  try {
    await connection.run({ create: collection, ...options }, { readPreference: 'primary' });
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

/** How a change of collections and indexes is acknowledged. */
export const MAJORITY = { w: 'majority', wtimeout: 60_000 };
