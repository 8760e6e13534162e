import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import { ensureCollection, layoutOf } from './collection.ts';
import type { Layout, SetupTask } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { MongoRefusal } from './errors.ts';
import { readIndexes } from './indexes.ts';
import { BY_KEY } from './plan.ts';

/** A kind of record: its collection, and the validator that allows only such records. */
export interface RecordKind {
  /** What the records are called, and their collection without the operator's prefix. */
  readonly collection: string;
  readonly validator: Document;
}

const USER = {
  $jsonSchema: {
    bsonType: 'object',
    required: ['_id', 'name', 'email', 'createdAt', 'updatedAt'],
    additionalProperties: false,
    properties: {
      _id: { bsonType: 'string' },
      name: { bsonType: 'string' },
      email: { bsonType: 'string' },
      metadata: { bsonType: 'object', additionalProperties: { bsonType: 'string' } },
      createdAt: { bsonType: 'date' },
      updatedAt: { bsonType: 'date' },
    },
  },
};

const EXPORT = {
  $jsonSchema: {
    bsonType: 'object',
    required: ['_id', 'state', 'request', 'createdAt'],
    properties: {
      _id: { bsonType: 'string' },
      state: { bsonType: 'string' },
      request: { bsonType: 'object' },
      createdAt: { bsonType: 'date' },
    },
  },
};

export const USERS: RecordKind = { collection: 'users', validator: USER };
export const EXPORTS: RecordKind = { collection: 'exports', validator: EXPORT };

/**
 * Makes sure that the collection of a kind exists and holds such records only. Many applications have a collection of
 * this name. Their documents may contain password hashes and must not be shown to anybody. A collection with other
 * documents is refused (MongoRefusal), unless its validator excludes them or it holds none.
 */
export function setUpRecords({ collection: noun, validator }: RecordKind) {
  return async (connection: MongoConnection, task: SetupTask): Promise<Layout> => {
    const existing = await ensureCollection(connection, task, validator, (description) =>
      check(connection, description, { noun, wanted: validator }, task),
    );
    // Records are read in order of id only, and the index of _id is always sound.
    return layoutOf(
      existing,
      await readIndexes(connection, task.collection, [BY_KEY]),
      task.server,
      new Map(),
    );
  };
}

async function check(
  connection: MongoConnection,
  { type, options = {} }: Document,
  { noun, wanted }: { readonly noun: string; readonly wanted: Document },
  { collection, onWarning }: SetupTask,
): Promise<void> {
  const { collation, validator } = options as Document;
  if (type !== 'collection') throw refusal(noun, collection, `it is a ${String(type)}, not a collection`);
  if (collation) throw refusal(noun, collection, 'it has a collation, which changes its order');
  if (isDeepStrictEqual(validator, wanted)) return;
  const find = { find: collection, filter: { $nor: [wanted] }, limit: 1, projection: { _id: 1 } };
  const { cursor } = await connection.run(find, { readPreference: 'primaryPreferred' });
  const [stranger] = (cursor as { firstBatch: Document[] }).firstBatch;
  if (stranger) throw refusal(noun, collection, `it has documents that are not ${noun} of this server`);
  onWarning(
    `The collection '${collection}' has no such validator, so clients would see documents that other programs insert. Its validator should be ${JSON.stringify(wanted)}`,
  );
}

function refusal(noun: string, collection: string, reason: string): MongoRefusal {
  const subject = noun.charAt(0).toUpperCase() + noun.slice(1);
  return new MongoRefusal(`${subject} are not served from the collection '${collection}': ${reason}.`);
}
