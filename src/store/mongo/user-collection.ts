import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import { createCollection, describeCollection } from './collection.ts';
import type { Layout, SetupOptions } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { MongoRefusal } from './errors.ts';
import { readIndexes, roleNames } from './indexes.ts';

/** A document is a user and nothing else. */
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

/**
 * Makes sure that the collection of users is there and holds users only. Many applications have a collection of this
 * name: one whose documents are anything else, with password hashes in them maybe, must not be shown to anybody. It is
 * refused (MongoRefusal), unless its validator keeps such documents out or there are none.
 */
export async function setUpUsers(connection: MongoConnection, options: SetupOptions): Promise<Layout> {
  const existing = await describeCollection(connection, options.collection);
  if (existing) await check(connection, existing, options);
  else await createCollection(connection, options, USER);
  const found = await readIndexes(connection, options.collection);
  return { clustered: found.clustered, indexes: roleNames(found) };
}

async function check(
  connection: MongoConnection,
  { type, options = {} }: Document,
  { collection, onWarning }: SetupOptions,
): Promise<void> {
  const { collation, validator } = options as Document;
  if (type !== 'collection') throw refusal(collection, `it is a ${String(type)}, expected a collection`);
  if (collation) throw refusal(collection, 'it has a collation, and so another order');
  if (isDeepStrictEqual(validator, USER)) return;
  const find = { find: collection, filter: { $nor: [USER] }, limit: 1, projection: { _id: 1 } };
  const { cursor } = await connection.run(find, { readPreference: 'primaryPreferred' });
  const [stranger] = (cursor as { firstBatch: Document[] }).firstBatch;
  if (stranger) throw refusal(collection, `it holds documents that are no users of this server`);
  onWarning(
    `The collection '${collection}' is not validated: what other programs put there would be shown to clients. Its validator should be ${JSON.stringify(USER)}`,
  );
}

function refusal(collection: string, reason: string): MongoRefusal {
  return new MongoRefusal(`Users are not served from the collection '${collection}': ${reason}.`);
}
