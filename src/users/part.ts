import type { Client } from '../access/admission.ts';
import { scopeOf, type Scope } from '../access/rights.ts';
import { AppError, Faults, storeUnfit } from '../errors.ts';
import { getOrMake } from '../get-or-make.ts';
import { parseJson } from '../input/body-json.ts';
import { pointer } from '../input/json-scan.ts';
import { bodyCheck, faultsIn, invalidBody } from '../input/validate.ts';
import { hiding, whileAway } from '../resources/query/part.ts';
import { chooseIndex, isRefusal } from '../resources/query/planner.ts';
import { EVERYTHING } from '../rows/selection.ts';
import { KEY } from '../store/bookmark.ts';
import { BSON } from '../store/bson.ts';
import type { Index } from '../store/indexes.ts';
import { PartRows } from '../store/part-rows.ts';
import type { Records } from '../store/records.ts';
import type { Equality } from '../store/store.ts';
import { USERS } from './row.ts';
import { metadataFault, USER, USER_PATCH, type UserBody } from './user.ts';

/** A part is kept as long as the rights that open it. */
const parts = new WeakMap<Records, WeakMap<Scope, UserPart>>();

/** The users that a client may see: all, or those of the part that its key opens. */
export function usersFor(users: Records, { key }: Pick<Client, 'key'>): UserPart {
  const scope = key && scopeOf(key.rights, USERS.name);
  return scope ? usersInPart(users, scope) : allUsers(users);
}

/** All users, with all fields. */
export function allUsers(users: Records): UserPart {
  return usersInPart(users, ALL);
}

const ALL: Scope = { where: [], hide: [] };

/** Throws Faults when the values of the part are none of users. */
function usersInPart(users: Records, scope: Scope): UserPart {
  const own = getOrMake(parts, users, () => new WeakMap<Scope, UserPart>());
  return getOrMake(own, scope, () => makePart(users, scope));
}

/** Rejects with Faults when no index answers the values of a part. While the store is away that is not known. */
export async function checkUsers(users: Records, scope: Scope): Promise<null> {
  const { where } = usersInPart(users, scope);
  const found = where.length === 0 ? null : await whileAway((signal) => users.describe(signal));
  const choice = found && choose(where, found.indexes);
  if (!choice || !isRefusal(choice)) return null;
  const { reason, remedy } = choice;
  const fields = remedy?.filter((path) => path !== KEY).join(',');
  throw new Faults([
    fields === undefined
      ? `where: ${reason}`
      : `no index answers where; this one would: sluice index ${USERS.name} ${fields}`,
  ]);
}

/** The index that has the users of a part in order of id. */
function choose(where: readonly Equality[], indexes: readonly Index[]) {
  return chooseIndex({ equals: where.map(({ path }) => path), ranges: [] }, indexes);
}

/** A text that all users of a part have. */
interface Value {
  /** Where it is in a user: `['name']`, `['email']` or `['metadata', NAME]`. */
  readonly at: readonly string[];
  readonly text: string;
}

export type UserPart = ReturnType<typeof makePart>;

/**
 * The part of the users that a key opens. Users outside of it are absent. A user that is written has the values before
 * and after. A part that hides fields is only read: a body replaces what its client cannot see. Throws Faults.
 */
function makePart(users: Records, scope: Scope) {
  const { hide } = scope;
  const faults: string[] = [];
  const shown = hiding(EVERYTHING, hide, faults);
  const unknown = hide.filter((path) => !isShown(path) && path !== 'id');
  faults.push(...unknown.map((path) => `hide: users have no field ${JSON.stringify(path)}`));
  const values = scope.where.map(([path, text]) => valueOf(path, text, faults));
  if (faults.length > 0) throw new Faults(faults);
  const where: readonly Equality[] = values.map(({ at, text }) => ({ path: at.join('.'), value: text }));
  const rows = new PartRows(users, { where, hide }, async (_paths, _plan, signal) => {
    const choice = choose(where, (await users.describe(signal)).indexes);
    if (!isRefusal(choice)) return choice.index;
    throw storeUnfit('The index by which the key reads users is gone.', new Error(choice.reason));
  });

  /** The values of the part that a stored user does not have. */
  const missing = (row: Uint8Array): readonly Value[] => {
    if (values.length === 0) return [];
    const user = BSON.deserialize(row);
    return values.filter(({ at, text }) => valueAt(user, at) !== text);
  };

  return {
    rows: scope === ALL ? users : rows,
    /** What of the users may be shown. */
    shown,
    /** Whether all fields of its users are shown. */
    showsAll: hide.length === 0,
    /** The values that all its users have. */
    where,
    /** Whether it has all users. */
    isWhole: values.length === 0,
    /** Whether a stored user is in the part. */
    has: (row: Uint8Array): boolean => missing(row).length === 0,
    /** A body with the metadata of the part that it omits. Throws AppError `invalid-body` when they are too many then. */
    complete(body: UserBody): UserBody {
      const texts = new Map<string, string>(Object.entries(body.metadata ?? {}));
      for (const { at, text } of values) {
        const [, name] = at;
        if (name !== undefined && !texts.has(name)) texts.set(name, text);
      }
      if (texts.size === 0) return body;
      const metadata = Object.fromEntries(texts);
      const fault = metadataFault(metadata);
      if (fault !== null) throw invalidBody([{ pointer: '/metadata', detail: fault }]);
      return { ...body, metadata };
    },
    /** Returns a user before it is stored. Throws AppError `invalid-body` unless it is in the part. */
    checked(row: Uint8Array): Uint8Array {
      const faults = missing(row).map(({ at, text }) => ({
        pointer: pointer(at),
        detail: `expected ${JSON.stringify(text)}, which all users have that the key opens`,
      }));
      if (faults.length > 0) throw invalidBody(faults);
      return row;
    },
    /** Throws AppError `forbidden` when users of the part cannot be written. */
    checkWritable(): void {
      if (hide.length > 0)
        throw new AppError(
          'forbidden',
          'The key hides fields of users, and a write replaces whole users: it cannot have the right users:write.',
        );
    },
  };
}

/** A value of `where`. Adds to `faults` what is wrong with it. */
function valueOf(path: string, text: string, faults: string[]): Value {
  const [, prefix = 'str', value = text] =
    /^(str|int|num|dec|oid|date|uuid|bool|null):(.*)$/s.exec(text) ?? [];
  const [, metadata] = /^metadata\.(.+)$/s.exec(path) ?? [];
  const at: Value['at'] = metadata === undefined ? [path] : ['metadata', metadata];
  if (metadata === undefined && path !== 'name' && path !== 'email')
    faults.push(
      `where: users cannot be chosen by ${JSON.stringify(path)}: expected name, email or metadata.NAME`,
    );
  else if (prefix !== 'str') faults.push(`where: ${path} of a user is a text`);
  else if (metadata?.includes('.'))
    faults.push(`where: ${path} has a name with a dot, which no index can have`);
  else faults.push(...faultsOf(at, value).map((fault) => `where: ${path}: ${fault}`));
  return { at, text: value };
}

const check = bodyCheck(USER_PATCH);

/** Why no user can have this text. */
function faultsOf([field = '', name]: Value['at'], text: string): readonly string[] {
  const value = name === undefined ? text : Object.fromEntries([[name, text]]);
  try {
    check(parseJson(Buffer.from(JSON.stringify({ [field]: value }))));
    return [];
  } catch (error) {
    return faultsIn(error, 'The user').map(({ detail }) => detail);
  }
}

/** What stands at a path of a document. Undefined where nothing does, whatever is on its prototype. */
function valueAt(document: unknown, at: readonly string[]): unknown {
  return at.reduce(
    (value, name) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, name)
        ? (value as Readonly<Record<string, unknown>>)[name]
        : undefined,
    document,
  );
}

/** Whether a path is of a field that users can have. */
function isShown(path: string): boolean {
  return Object.hasOwn(USER.properties, path) || path.startsWith('metadata.');
}
