import { AppError } from '../errors.ts';
import { quote } from '../input/query.ts';
import { named, namedObject, Type, type Static } from '../schema.ts';

export const PATH = '/api/users';

/** Unreserved characters of RFC 3986, 2.3, so an id appears in a URL as it is. */
const ID_FORM = '^[A-Za-z0-9._~-]{1,64}$';
/** These would be removed from a path. */
const NO_IDS: readonly string[] = ['.', '..'];

/** The id of a user in a path. */
export const USER_ID = {
  type: 'string',
  pattern: ID_FORM,
  not: { enum: NO_IDS },
  description: 'the id of the user',
  examples: ['ada'],
} as const;

export function isUserId(text: string): boolean {
  return new RegExp(ID_FORM).test(text) && !NO_IDS.includes(text);
}

/** The error for an id that no user has or can have. */
export function noSuchUser(id: string): AppError {
  return new AppError('not-found', `No user has the id ${quote(id)}.`);
}

/** Lengths are in characters (Unicode code points), as JSON Schema counts them. */
const MOST_TEXTS = 50;
const LONGEST_TEXT = 500;

const name = Type.String({ minLength: 1, maxLength: 200, description: 'a string of 1 to 200 characters' });

const email = Type.String({
  maxLength: 320,
  pattern: '^[^@]+@[^@]+$',
  description: 'an e-mail address of at most 320 characters, with one @ between two non-empty parts',
});

/** TypeBox's own Record turns the names into a pattern, which names with a line break do not match. */
const metadata = Type.Unsafe<Readonly<Record<string, string>>>({
  type: 'object',
  maxProperties: MOST_TEXTS,
  propertyNames: { maxLength: LONGEST_TEXT, description: `a name of at most ${LONGEST_TEXT} characters` },
  additionalProperties: {
    type: 'string',
    maxLength: LONGEST_TEXT,
    description: `a string of at most ${LONGEST_TEXT} characters`,
  },
  description: `an object with at most ${MOST_TEXTS} strings`,
});

const metadataPatch = Type.Unsafe<Readonly<Record<string, string | null>> | null>({
  type: ['object', 'null'],
  propertyNames: { maxLength: LONGEST_TEXT, description: `a name of at most ${LONGEST_TEXT} characters` },
  additionalProperties: {
    type: ['string', 'null'],
    maxLength: LONGEST_TEXT,
    description: `a string of at most ${LONGEST_TEXT} characters, or null to remove it`,
  },
  description: `an object of strings, or null to remove it`,
});

const time = (description: string) => Type.String({ format: 'date-time', description });

/** A user as clients see it. */
export const USER = namedObject('User', 'a user', {
  id: Type.String({ pattern: ID_FORM, description: 'the id of the user, the last segment of its URL' }),
  name,
  email,
  metadata: Type.Optional(metadata),
  createdAt: time('the time at which the user was created'),
  updatedAt: time('the time of the last change; later with each change'),
});
export type User = Static<typeof USER>;

/** A user as a client sees it whose key hides fields. */
export const SHOWN_USER = named(
  'ShownUser',
  Type.Partial(USER, {
    additionalProperties: false,
    description: 'a user without the fields that the key hides',
  }),
);

/** The body that creates or replaces a user: everything that a client may set. */
export const USER_BODY = namedObject('UserBody', 'an object with name and email', {
  name,
  email,
  metadata: Type.Optional(metadata),
});
export type UserBody = Static<typeof USER_BODY>;

/**
 * A merge patch (RFC 7396): only what it names changes, and null removes. A name or an e-mail address cannot be
 * removed.
 */
export const USER_PATCH = namedObject('UserPatch', 'an object with some of name, email and metadata', {
  name: Type.Optional(name),
  email: Type.Optional(email),
  metadata: Type.Optional(metadataPatch),
});
export type UserPatch = Static<typeof USER_PATCH>;

/** The confirmation of a removal. */
export const REMOVED_USER = namedObject('RemovedUser', 'the confirmation that a user was deleted', {
  id: USER.properties.id,
  deleted: Type.Literal(true),
});

/** The fault of metadata with too many texts, otherwise null. A merge can have more texts than each of its parts. */
export function metadataFault(texts: Readonly<Record<string, string>>): string | null {
  const count = Object.keys(texts).length;
  return count > MOST_TEXTS
    ? `expected ${metadata.description ?? ''}; the change would make it ${count}`
    : null;
}
