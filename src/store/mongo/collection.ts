import type { Document } from 'mongodb';
import type { MongoConnection } from './connection.ts';
import { CODES, MongoRefusal, codeOf } from './errors.ts';
import { indexFaults, missingIndexes, readIndexes, roleNames } from './indexes.ts';
import type { IndexRole } from './plan.ts';
import { INDEX_KEYS } from './plan.ts';

/** What reads need to know about a collection: how it is kept, and its indexes' names, by which alone they are hinted. */
export interface Layout {
  readonly clustered: boolean;
  readonly indexes: Readonly<Record<IndexRole, string>>;
}

export interface SetupOptions {
  readonly collection: string;
  /** Whether what is missing is made; else it is only named. */
  readonly manage: boolean;
  readonly onWarning: (message: string) => void;
}

/** Keeps prices finite numbers (an array would make the indexes multikey: rows come several times) and categories strings. */
const VALIDATOR = {
  $jsonSchema: {
    bsonType: 'object',
    required: ['category', 'price'],
    properties: { category: { bsonType: 'string' }, price: { bsonType: 'number' } },
  },
  price: { $gt: -Infinity, $lt: Infinity },
};

/**
 * Makes sure that the collection and its indexes are there and fit to be read by; makes what is missing, changes nothing
 * that is there. MongoRefusal when something is in the way that an operator must mend; `store-unavailable`.
 */
export async function setUpCollection(connection: MongoConnection, options: SetupOptions): Promise<Layout> {
  const existing = await describeCollection(connection, options.collection);
  if (!existing) await createCollection(connection, options, VALIDATOR);
  else checkKind(existing, options);
  let found = await readIndexes(connection, options.collection);
  const missing = missingIndexes(found);
  if (missing.length > 0) {
    await createIndexes(connection, options, missing);
    found = await readIndexes(connection, options.collection);
  }
  const faults = await indexFaults(connection, options.collection, found);
  if (faults.length > 0)
    throw new MongoRefusal(
      `The collection '${options.collection}' cannot be read reliably: ${faults.join('; ')}.`,
    );
  return { clustered: found.clustered, indexes: roleNames(found) };
}

/** What `listCollections` says of a collection; null when there is none. */
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

function checkKind({ type, options = {} }: Document, { collection, onWarning }: SetupOptions): void {
  const { collation, validator } = options as Document;
  if (type !== 'collection')
    throw new MongoRefusal(`'${collection}' is a ${String(type)}, expected a collection.`);
  if (collation)
    throw new MongoRefusal(
      `The collection '${collection}' has a collation (${String((collation as Document).locale)}): its order of strings is not that of the items.`,
    );
  if (!validator)
    onWarning(
      `The collection '${collection}' has no validator. A price that is an array would spoil its indexes, and items come several times.`,
    );
}

/** Makes a collection that is clustered on `_id`. MongoRefusal when this is not allowed. */
export async function createCollection(
  connection: MongoConnection,
  { collection, manage }: SetupOptions,
  validator: Document,
): Promise<void> {
  if (!manage)
    throw new MongoRefusal(
      `The collection '${collection}' is missing, and MONGODB_MANAGE_INDEXES=false forbids to create it.`,
    );
  const clusteredIndex = { key: { _id: 1 }, unique: true };
  try {
    await connection.run(
      { create: collection, clusteredIndex, validator, writeConcern: MAJORITY },
      { readPreference: 'primary' },
    );
  } catch (error) {
    if (codeOf(error) === CODES.namespaceExists) return; // another process was faster
    if (codeOf(error) !== CODES.unauthorized) throw error;
    throw new MongoRefusal(`The collection '${collection}' is missing, and this user may not create it.`, {
      cause: error,
    });
  }
}

const MAJORITY = { w: 'majority', wtimeout: 60_000 };

async function createIndexes(
  connection: MongoConnection,
  { collection, manage }: SetupOptions,
  missing: readonly IndexRole[],
): Promise<void> {
  const indexes = missing.map((role) => {
    const key = Object.fromEntries(INDEX_KEYS[role].map((field) => [field, 1]));
    return { key, name: INDEX_KEYS[role].map((field) => `${field}_1`).join('_') };
  });
  const list = indexes.map(({ key }) => JSON.stringify(key)).join(', ');
  if (!manage)
    throw new MongoRefusal(
      `The collection '${collection}' lacks the indexes ${list}, and MONGODB_MANAGE_INDEXES=false forbids to create them.`,
    );
  try {
    await connection.run(
      { createIndexes: collection, indexes, writeConcern: MAJORITY },
      { readPreference: 'primary', unlimited: true },
    );
  } catch (error) {
    if (codeOf(error) === CODES.unauthorized)
      throw new MongoRefusal(
        `The collection '${collection}' lacks the indexes ${list}, and this user may not create them.`,
        { cause: error },
      );
    throw error;
  }
}
