import { fingerprint } from '../rows/fingerprint.ts';
import { rowToJson } from '../rows/row-json.ts';
import { BSON } from '../store/bson.ts';
import type { RecordDeclaration } from '../store/records.ts';
import type { User } from './user.ts';

/** A user as a store keeps it, with times as dates. Lists have the fields in this order, too. */
interface StoredUser {
  readonly _id: string;
  readonly name: string;
  readonly email: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** How the store keeps users. */
export const USERS: RecordDeclaration = {
  ...{ name: 'users', collection: 'users', indexes: [], isMadeAtOnce: true },
  validator: {
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
  },
};

/** The BSON document of a user. */
export function toRow({ id, name, email, metadata, createdAt, updatedAt }: User): Uint8Array {
  const stored: StoredUser = {
    _id: id,
    name,
    email,
    ...(metadata !== undefined && { metadata }),
    createdAt: new Date(createdAt),
    updatedAt: new Date(updatedAt),
  };
  return BSON.serialize(stored);
}

/** The user of a BSON document. */
export function fromRow(row: Uint8Array): User {
  const { _id, name, email, metadata, createdAt, updatedAt } = BSON.deserialize(row) as StoredUser;
  return {
    id: _id,
    name,
    email,
    ...(metadata !== undefined && { metadata }),
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

/** A stored user's representation, and its strong tag. The tag changes with every change, because `updatedAt` does. */
export function represent(row: Uint8Array): { readonly text: string; readonly etag: string } {
  const text = rowToJson(row);
  return { text, etag: `"${fingerprint(Buffer.from(text))}"` };
}
