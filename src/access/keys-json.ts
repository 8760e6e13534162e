import type { BodyFault } from '../base/errors.ts';
import { parseJson, type JsonBody } from '../input/body-json.ts';
import { exactDate } from '../input/dates.ts';
import { pointer } from '../input/json-scan.ts';
import { bodyCheck, faultsIn } from '../input/validate.ts';
import { listOf, object, Type, wordOf, type Static } from '../base/schema.ts';
import type { Key } from './keys.ts';
import { OWN_RATE_FORM, parseRate } from './policy.ts';
import { ACTIONS, rightsOf } from './rights.ts';

/** Bounds the work for a file of keys. */
const MOST_VALUES = 1_000_000;

const name = Type.String({ minLength: 1, maxLength: 120, description: 'the name of a resource' });
const path = Type.String({ minLength: 1, maxLength: 1024, description: 'the path of a field' });
const scalar = Type.Unsafe<string | number | boolean | null>({
  type: ['string', 'number', 'boolean', 'null'],
  description: 'a value: a text as in a URL, a number, true, false or null',
});

const resources = Type.Array(name, { uniqueItems: true, description: 'names of resources, each once' });
const actions = Type.Array(wordOf(ACTIONS), {
  uniqueItems: true,
  description: `actions, each once, of ${ACTIONS.join(', ')}`,
});
const MEMBERS = {
  resources: Type.Optional(resources),
  actions: Type.Optional(actions),
  where: Type.Optional(
    Type.Record(
      Type.String(),
      Type.Record(Type.String(), scalar, {
        minProperties: 1,
        description: 'the values that the rows have, by path, at least one',
      }),
      { minProperties: 1, description: 'an object with the values of rows, by resource, at least one' },
    ),
  ),
  hide: Type.Optional(
    Type.Record(
      Type.String(),
      Type.Array(path, { minItems: 1, uniqueItems: true, description: 'paths of fields, each once' }),
      { minProperties: 1, description: 'an object with the hidden paths, by resource, at least one' },
    ),
  ),
  expires: Type.Optional(
    Type.String({ description: 'a date and time with a zone, as in 2026-12-31T00:00:00Z' }),
  ),
  rate: Type.Optional(Type.String({ pattern: OWN_RATE_FORM, description: 'a rate such as "100/s"' })),
  streams: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 999_999, description: 'a number of open streams, at least 1' }),
  ),
};

/** The form of what a key is called in logs and limits. */
export const NAME = '^[A-Za-z0-9_.-]{1,64}$';

const KEY = object('a key: an object with name and sha256', {
  name: Type.String({
    pattern: NAME,
    description: 'the name of the client, 1 to 64 characters of A-Z a-z 0-9 . _ -',
  }),
  sha256: Type.String({
    pattern: '^[0-9A-Fa-f]{64}$',
    description: 'the SHA-256 of the key, 64 hexadecimal digits',
  }),
  ...MEMBERS,
});

/** The members that a token's claim has: those of a key, of which it must name resources and actions. */
const GRANT = object('an object with resources and actions', { ...MEMBERS, resources, actions });

const FILE = object('an object with keys', { keys: listOf('an array of keys', KEY) });
const checkFile = bodyCheck(FILE);
const checkGrant = bodyCheck(GRANT);

type KeyEntry = Static<typeof KEY>;
type GrantEntry = Omit<KeyEntry, 'name' | 'sha256'>;

export interface KeysFile {
  readonly keys: readonly Key[];
  readonly faults: readonly string[];
}

/** Parses the JSON form of API_KEYS_FILE. Faults have a JSON pointer each, and never the value at that place. */
export function parseJsonKeys(text: string): KeysFile {
  const faults: string[] = [];
  const fault = (place: string, expected: string) =>
    faults.push(`API_KEYS_FILE ${place === '' ? '/' : place}: ${expected}`);
  try {
    const body = parseJson(Buffer.from(text), MOST_VALUES);
    const { keys: given } = checkFile(body);
    const keys = given.map((one, n) => {
      const at = ['keys', String(n)];
      return {
        name: one.name,
        digest: one.sha256.toLowerCase(),
        ...grantOf(one, at, body, (member, expected) => fault(pointer([...at, member]), expected)),
      };
    });
    const digests = keys.map(({ digest }) => digest);
    for (const [n, digest] of digests.entries()) {
      const before = digests.indexOf(digest);
      if (before < n) fault(`/keys/${n}/sha256`, `/keys/${before} has the same key`);
    }
    return { keys, faults };
  } catch (error) {
    for (const { pointer: place, detail } of faultsIn(error, 'The file')) fault(place, detail);
    return { keys: [], faults };
  }
}

/** What a claim or JWT_DEFAULT grants: a key without its name and digest. */
export type Grant = Omit<Key, 'name' | 'digest' | 'issuer'>;

interface GrantResult {
  readonly grant: Grant;
  /** With faults the grant is not to be used. Each has its place and what was expected, never the value there. */
  readonly faults: readonly string[];
}

/** The rights of a token without the claim, where JWT_DEFAULT gives none. */
export const NO_RIGHTS: Grant = { rights: rightsOf({ resources: [], actions: [] }), expires: Infinity };

/** What a value in JSON grants: as a key, but it must name resources and actions: nothing opens by omission. */
export function readGrant(value: unknown, at: readonly string[], body: JsonBody): GrantResult {
  const place = pointer(at);
  const faults: string[] = [];
  const fault = (under: string, expected: string) =>
    faults.push(`${under === '' ? '/' : under}: ${expected}`);
  const own = body.faults.filter((one) => `${one.pointer}/`.startsWith(`${place}/`));
  const below = own.map((one): BodyFault => ({ ...one, pointer: one.pointer.slice(place.length) }));
  try {
    const given = checkGrant({ value, numbers: body.numbers, faults: below });
    const grant = grantOf(given, at, body, (member, expected) => fault(pointer([member]), expected));
    return { grant, faults };
  } catch (error) {
    for (const one of faultsIn(error, 'The text')) fault(one.pointer, one.detail);
    return { grant: NO_RIGHTS, faults };
  }
}

/** Reads the text of JWT_DEFAULT. */
export function readGrantText(text: string): GrantResult {
  try {
    const body = parseJson(Buffer.from(text));
    return readGrant(body.value, [], body);
  } catch (error) {
    return { grant: NO_RIGHTS, faults: faultsIn(error, 'The text').map(({ detail }) => detail) };
  }
}

/** What a key or a claim at this place of a JSON text grants. `fault` is called with faults that no schema finds. */
function grantOf(
  given: GrantEntry,
  at: readonly string[],
  body: Pick<JsonBody, 'numbers'>,
  fault: (member: string, expected: string) => void,
): Grant {
  const { resources, actions, where, hide, expires, rate, streams } = given;
  const scoped = { ...where, ...hide };
  if (resources)
    for (const resource of Object.keys(scoped))
      if (!resources.includes(resource))
        fault(
          where && Object.hasOwn(where, resource) ? 'where' : 'hide',
          `${JSON.stringify(resource)} is not among the resources of the key`,
        );
  const ends = expires === undefined ? undefined : exactDate(expires, false);
  if (typeof ends === 'string') fault('expires', `the date ${ends}`);
  return {
    rights: rightsOf({ resources, actions, where: where && textsOf(where, at, body), hide }),
    expires: ends instanceof Date ? ends.getTime() : Infinity,
    ...(rate !== undefined && { rate: parseRate(rate) }),
    ...(streams !== undefined && { streams }),
  };
}

type Where = NonNullable<KeyEntry['where']>;

/** The values as texts with the prefix that fixes their kind, where JSON has kinds of its own. */
function textsOf(
  where: Where,
  at: readonly string[],
  { numbers }: Pick<JsonBody, 'numbers'>,
): Record<string, Record<string, string>> {
  const textOf = (value: Where[string][string], place: string): string => {
    if (typeof value === 'string') return value;
    if (typeof value === 'boolean') return `bool:${value}`;
    if (value === null) return 'null:';
    const digits = numbers.get(place) ?? String(value);
    return `${/^-?\d+$/.test(digits) ? 'int' : 'num'}:${digits}`;
  };
  return mapped(where, (values, resource) =>
    mapped(values, (value, field) => textOf(value, pointer([...at, 'where', resource, field]))),
  );
}

function mapped<T, U>(
  object: Readonly<Record<string, T>>,
  map: (value: T, name: string) => U,
): Record<string, U> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value, name)]));
}
