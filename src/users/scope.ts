import type { Client } from '../access/admission.ts';
import type { Scope } from '../access/rights.ts';
import { AppError, Faults } from '../base/errors.ts';
import { pointer } from '../input/json-scan.ts';
import { invalidBody } from '../input/validate.ts';
import { openForm } from '../resources/query/form.ts';
import type { Kind } from '../resources/query/kinds.ts';
import { indexLine } from '../resources/query/not-indexed.ts';
import { checkIndexes, scopedResource, resourceFor } from '../resources/query/scope.ts';
import type { Resource } from '../resources/query/resource.ts';
import { EVERYTHING } from '../rows/selection.ts';
import type { Records } from '../store/records.ts';
import { USERS, type StoredUser } from './row.ts';
import { checkedUser, USER, type UserBody } from './user.ts';

/** All users: as records that are written, and as a resource of which a key can open a part. */
export interface Users {
  readonly records: Records;
  readonly resource: Resource;
}

export function usersOf(records: Records): Users {
  const { name } = USERS;
  const resource: Resource = {
    name,
    rows: records,
    declared: [],
    shown: EVERYTHING,
    kinds: new Texts(),
    idType: 'string',
    form: { ...openForm(name), parameters: [], closed: [] },
    indexLine: indexLine(true, name, undefined, name),
    streamsOf: () => {
      throw new TypeError('users have no streams');
    },
  };
  return { records, resource };
}

/** Users are chosen by texts alone, so that one of digits needs no prefix. */
class Texts extends Map<string, Kind> {
  override get(): Kind {
    return 'string';
  }
}

const CHOSEN_BY = /^(?:name|email|metadata\.([^.]+))$/s;

/** Checks that a part of the users can be served. Rejects with Faults. */
export async function checkUsers({ resource }: Users, scope: Scope): Promise<null> {
  const { where = [] } = scopedResource(resource, scope).scope ?? {};
  const odd = where.filter(({ path, value }) => !CHOSEN_BY.test(path) || typeof value !== 'string');
  const unknown = scope.hide.filter(
    (path) => !Object.hasOwn(USER.properties, path) && !path.startsWith('metadata.'),
  );
  const faults = [
    ...odd.map(
      ({ path }) => `where: users are chosen by texts of name, email or metadata.NAME, not by ${path}`,
    ),
    ...unknown.map((path) => `hide: users have no field ${JSON.stringify(path)}`),
  ];
  if (faults.length > 0) throw new Faults(faults);
  await checkIndexes(scopedResource(resource, scope));
  return null;
}

/**
 * How a client writes users. Those outside of the part that its key opens are absent, and each has the values of the part
 * before and after. Throws AppError `forbidden` for a part that hides fields: a body replaces what its client cannot see.
 */
export function writerFor({ resource }: Users, client: Pick<Client, 'key'>) {
  const { scope } = resourceFor(resource, client);
  if (scope && scope.given.hide.length > 0)
    throw new AppError(
      'forbidden',
      'The key hides fields of users, and a write replaces whole users: it cannot have the right users:write.',
    );
  const where = scope?.where ?? [];
  const missing = (user: StoredUser) => where.filter(({ path, value }) => valueAt(user, path) !== value);
  return {
    isWhole: where.length === 0,
    has: (user: StoredUser): boolean => missing(user).length === 0,
    /** A body with the metadata of the part that it omits. Throws AppError `invalid-body` when they are too many then. */
    complete(body: UserBody): UserBody {
      const texts = where.flatMap(({ path, value }) => {
        const name = nameOf(path);
        return name === undefined ? [] : [[name, String(value)] as const];
      });
      if (texts.length === 0) return body;
      const { metadata = {} } = body;
      return checkedUser({ ...body, metadata: { ...metadata, ...Object.fromEntries(texts), ...metadata } });
    },
    /** Returns a user before it is stored. Throws AppError `invalid-body` unless it is in the part. */
    checked(user: StoredUser): StoredUser {
      const faults = missing(user).map(({ path, value }) => ({
        pointer: pointer(placeOf(path)),
        detail: `expected ${JSON.stringify(value)}, which all users have that the key opens`,
      }));
      if (faults.length > 0) throw invalidBody(faults);
      return user;
    },
  };
}

/** The name of a text of metadata. Undefined: the path is of another field. */
function nameOf(path: string): string | undefined {
  return CHOSEN_BY.exec(path)?.[1];
}

function placeOf(path: string): readonly string[] {
  const name = nameOf(path);
  return name === undefined ? [path] : ['metadata', name];
}

function valueAt({ name, email, metadata }: StoredUser, path: string): unknown {
  if (path === 'name') return name;
  return path === 'email' ? email : metadata?.[nameOf(path) ?? ''];
}
