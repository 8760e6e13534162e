import { isDeepStrictEqual } from 'node:util';
import { fingerprint } from '../rows/fingerprint.ts';
import { rowToJson } from '../rows/row-json.ts';
import { BSON } from '../store/values/bson.ts';
import type { RecordDeclaration } from '../store/records.ts';
import { checkedUser, type UserBody, type UserPatch } from './user.ts';

type Texts = Readonly<Record<string, string>>;

export interface StoredUser {
  readonly _id: string;
  readonly name: string;
  readonly email: string;
  readonly metadata?: Texts;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export const USERS: RecordDeclaration = {
  name: 'users',
  collection: 'users',
  indexes: [],
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

/** The BSON document of a user. Its fields have the order in which clients see them. */
export function toRow({ _id, name, email, metadata, createdAt, updatedAt }: StoredUser): Uint8Array {
  return BSON.serialize({ _id, name, email, metadata, createdAt, updatedAt });
}

export function fromRow(row: Uint8Array): StoredUser {
  return BSON.deserialize(row) as StoredUser;
}

/** A stored user's representation, and its strong tag. The tag changes with every change, because `updatedAt` does. */
export function represent(row: Uint8Array): { readonly text: string; readonly etag: string } {
  const text = rowToJson(row);
  return { text, etag: `"${fingerprint(Buffer.from(text))}"` };
}

/** A new user from a body. `now` is in milliseconds since 1970. */
export function createUser(id: string, body: UserBody, now: number): StoredUser {
  const time = new Date(now);
  return { _id: id, ...body, createdAt: time, updatedAt: time };
}

/** What the body omits is removed. `updatedAt` grows even when the clock does not, so every state has its own tag. */
export function replaceUser(
  { _id, createdAt, updatedAt }: StoredUser,
  body: UserBody,
  now: number,
): StoredUser {
  return { _id, ...body, createdAt, updatedAt: new Date(Math.max(now, updatedAt.getTime() + 1)) };
}

/** Applies a merge patch (RFC 7396). Null: it changes nothing. AppError `invalid-body` for an invalid result. */
export function patchUser(user: StoredUser, patch: UserPatch, now: number): StoredUser | null {
  const { metadata: texts, ...rest } = patch;
  const { name, email, metadata: kept } = user;
  const before: UserBody = { name, email, ...(kept && { metadata: kept }) };
  const metadata = texts === undefined ? kept : texts === null ? undefined : mergeTexts(kept, texts);
  const body = checkedUser({ name, email, ...rest, ...(metadata && { metadata }) });
  return isDeepStrictEqual(body, before) ? null : replaceUser(user, body, now);
}

/** Neither a spread nor Object.fromEntries lets a name reach a prototype. */
function mergeTexts(texts: Texts = {}, patch: Readonly<Record<string, string | null>>): Texts {
  const merged = Object.entries({ ...texts, ...patch });
  return Object.fromEntries(
    merged.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const])),
  );
}
