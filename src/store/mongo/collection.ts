import type { Binary, Document } from 'mongodb';
import { storeUnavailable } from '../../errors.ts';
import type { MongoConnection } from './connection.ts';
import type { Identity } from '../bookmark.ts';
import type { Index } from '../indexes.ts';
import { CODES, MongoRefusal, serverCodeOf, type ForeignServer } from './errors.ts';
import { indexFaults, indexNames, indexSpecs, missingIndexes, readIndexes } from './indexes.ts';
import { indexesFrom } from './discovery.ts';
import { listIndexes } from './index-list.ts';
import type { FoundIndexes, IndexFaults } from './indexes.ts';
import { BY_KEY, splitPaths, type IndexPaths } from './plan.ts';
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
  /** See indexSpecs. */
  readonly specs: ReadonlyMap<IndexPaths, string>;
  /** The indexes that cannot be used for reads although others can. */
  readonly faults: IndexFaults;
  /** Every index of a collection whose indexes were discovered, also those that no plan may use. */
  readonly found?: readonly Index[];
}

export interface SetupOptions {
  readonly collection: string;
  /** The indexes that reads need, beside that of the key. */
  readonly indexes: readonly IndexPaths[];
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
 * Keeps prices finite numbers and categories strings. (A price that is an array would make the indexes multikey: rows
 * would come several times.)
 */
const VALIDATOR = {
  $jsonSchema: {
    bsonType: 'object',
    required: ['category', 'price'],
    properties: { category: { bsonType: 'string' }, price: { bsonType: 'number' } },
  },
  price: { $gt: -Infinity, $lt: Infinity },
};

/**
 * Makes sure that the collection and its indexes exist and can be used for reads. Creates what is missing and changes
 * nothing that exists. Rejects with MongoRefusal when an operator must repair something, or with `store-unavailable`.
 */
export async function setUpCollection(connection: MongoConnection, task: SetupTask): Promise<Layout> {
  const { collection, isServing } = task;
  const wanted = [BY_KEY, ...task.indexes];
  const existing = await ensureCollection(connection, task, VALIDATOR, checkKind);
  const before = await readIndexes(connection, collection, wanted);
  const missing = missingIndexes(before);
  const made = missing.length > 0 && (await createIndexes(connection, task, missing));
  const found = made ? await readIndexes(connection, collection, wanted) : before;
  const faults = await indexFaults(connection, collection, found);
  const all = [...faults.values()];
  if (all.length > 0 && !isServing) {
    const spoilt = made ? missing.filter((paths) => faults.has(paths)) : [];
    if (spoilt.length > 0) await dropIndexes(connection, collection, found, spoilt);
    const dropped = spoilt.length > 0 ? ' The server has dropped the indexes that it had just built.' : '';
    throw new MongoRefusal(
      `The collection '${collection}' cannot be read reliably: ${all.join('; ')}.${dropped}`,
    );
  }
  const {
    indexes,
    specs,
    found: every,
  } = await indexesFrom(connection, collection, await listIndexes(connection, collection));
  const layout = layoutOf(existing, found, task.server, faults);
  return {
    ...layout,
    indexes: new Map([...indexes, ...layout.indexes]),
    specs: new Map([...specs, ...layout.specs]),
    found: every,
  };
}

/**
 * Returns the checked description of a collection. Creates the collection when it is missing and was not served
 * before. Rejects with MongoRefusal when it was served before, fails the check or cannot be created.
 */
export async function ensureCollection(
  connection: MongoConnection,
  task: SetupTask,
  validator: Document,
  check: (existing: Document, task: SetupTask) => void | Promise<void>,
): Promise<Document> {
  const { collection, isServing } = task;
  const existing = await describeCollection(connection, collection);
  if (existing) {
    await check(existing, task);
    return existing;
  }
  if (isServing)
    throw new MongoRefusal(
      `The collection '${collection}' is missing: it was dropped or renamed while the server ran. The server does not create it again. It serves the next collection of this name as soon as there is one.`,
      { brief: `The collection '${collection}' is missing.`, isGone: true },
    );
  await createCollection(connection, task, validator);
  const made = await describeCollection(connection, collection);
  if (!made)
    throw storeUnavailable(new Error(`the collection '${collection}' was created, but is not visible yet`));
  return made;
}

/** The layout of a collection, from its `listCollections` description and the indexes that were found. */
export function layoutOf(
  description: Document,
  found: FoundIndexes,
  { isSharded }: ServerKind,
  faults: IndexFaults,
): Layout {
  const { uuid } = (description.info ?? {}) as { readonly uuid?: Binary };
  return {
    clustered: found.clustered,
    sharded: isSharded,
    identity: uuid && Buffer.from(uuid.buffer).toString('hex'),
    indexes: indexNames(found),
    specs: indexSpecs(found),
    faults,
  };
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

function checkKind({ type, options = {} }: Document, { collection, onWarning }: SetupTask): void {
  const { collation, validator } = options as Document;
  if (type !== 'collection')
    throw new MongoRefusal(`'${collection}' is a ${String(type)}, not a collection.`);
  if (collation)
    throw new MongoRefusal(
      `The collection '${collection}' has a collation (${String((collation as Document).locale)}), so its order of strings is not the order of the items.`,
    );
  if (!validator)
    onWarning(
      `The collection '${collection}' has no validator. A price that is an array would make its indexes multikey, and reads would return items several times.`,
    );
}

/** Creates a collection that is clustered on `_id`. Rejects with MongoRefusal when this is not allowed. */
async function createCollection(
  connection: MongoConnection,
  {
    collection,
    manage,
    unmanaged = 'MONGODB_MANAGE_INDEXES=false forbids the server to create it',
    onNotice,
  }: SetupOptions,
  validator: Document,
): Promise<void> {
  if (!manage) throw new MongoRefusal(`The collection '${collection}' is missing, and ${unmanaged}.`);
  const clusteredIndex = { key: { _id: 1 }, unique: true };
  try {
    await connection.run(
      { create: collection, clusteredIndex, validator, writeConcern: MAJORITY },
      { readPreference: 'primary' },
    );
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

/** How a change of collections and indexes is acknowledged. */
export const MAJORITY = { w: 'majority', wtimeout: 60_000 };

/**
 * Drops new indexes that turned out to be unfit. An index stays multikey once it is, so it would be refused even after
 * the array is gone.
 */
async function dropIndexes(
  connection: MongoConnection,
  collection: string,
  found: FoundIndexes,
  spoilt: readonly IndexPaths[],
): Promise<void> {
  const names = indexNames(found);
  const index = spoilt.map((paths) => names.get(paths));
  await connection.run({ dropIndexes: collection, index }, { readPreference: 'primary' });
}

/** Returns whether the indexes were created. */
async function createIndexes(
  connection: MongoConnection,
  { collection, manage, isServing, onNotice }: SetupTask,
  missing: readonly IndexPaths[],
): Promise<boolean> {
  if (!manage && isServing) return false; // reads that need them are refused
  const indexes = missing.map((paths) => {
    const key = Object.fromEntries(splitPaths(paths).map((path) => [path, 1]));
    return {
      key,
      name: splitPaths(paths)
        .map((path) => `${path}_1`)
        .join('_'),
    };
  });
  const list = indexes.map(({ key }) => JSON.stringify(key)).join(', ');
  if (!manage)
    throw new MongoRefusal(
      `The collection '${collection}' lacks the indexes ${list}, and MONGODB_MANAGE_INDEXES=false forbids the server to create them.`,
    );
  try {
    await connection.run(
      { createIndexes: collection, indexes, writeConcern: MAJORITY },
      { readPreference: 'primary', unlimited: true },
    );
    onNotice?.(`The server has created the indexes ${list} of '${connection.database}.${collection}'.`);
    return true;
  } catch (error) {
    if (serverCodeOf(error) === CODES.unauthorized && isServing) return false;
    if (serverCodeOf(error) === CODES.unauthorized)
      throw new MongoRefusal(
        `The collection '${collection}' lacks the indexes ${list}, and the MongoDB user has no permission to create them.`,
        { cause: error },
      );
    throw error;
  }
}
