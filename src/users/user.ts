import { bodyCheck } from '../input/validate.ts';
import { named, namedObject, Type, type Static } from '../base/schema.ts';

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
const texts = (type: unknown, orNull = '') => ({
  propertyNames: { maxLength: LONGEST_TEXT, description: `a name of at most ${LONGEST_TEXT} characters` },
  additionalProperties: {
    type,
    maxLength: LONGEST_TEXT,
    description: `a string of at most ${LONGEST_TEXT} characters${orNull}`,
  },
});

const metadata = Type.Unsafe<Readonly<Record<string, string>>>({
  type: 'object',
  maxProperties: MOST_TEXTS,
  ...texts('string'),
  description: `an object with at most ${MOST_TEXTS} strings`,
});

const metadataPatch = Type.Unsafe<Readonly<Record<string, string | null>> | null>({
  type: ['object', 'null'],
  ...texts(['string', 'null'], ', or null to remove it'),
  description: `an object of strings, or null to remove it`,
});

const time = (description: string) => Type.String({ format: 'date-time', description });

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

/** A merge patch (RFC 7396): what it names changes, null removes. Name and e-mail address cannot be removed. */
export const USER_PATCH = namedObject('UserPatch', 'an object with some of name, email and metadata', {
  name: Type.Optional(name),
  email: Type.Optional(email),
  metadata: Type.Optional(metadataPatch),
});
export type UserPatch = Static<typeof USER_PATCH>;

export const REMOVED_USER = namedObject('RemovedUser', 'the confirmation that a user was deleted', {
  id: USER.properties.id,
  deleted: Type.Literal(true),
});

const check = bodyCheck(USER_BODY);

/** Returns what was made of a body. Throws AppError `invalid-body` where no client could have sent it. */
export function checkedUser(value: UserBody): UserBody {
  return check({ value, faults: [], numbers: new Map() });
}
