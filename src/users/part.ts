import type { Client } from '../access/admission.ts';
import { scopeOf, type Scope } from '../access/rights.ts';
import { AppError, Faults, storeUnfit } from '../errors.ts';
import { getOrMake } from '../get-or-make.ts';
import { parseJson } from '../input/body-json.ts';
import { pointer } from '../input/json-scan.ts';
import { bodyCheck, faultsIn, invalidBody } from '../input/validate.ts';
import { hiding, whileAway } from '../resources/query/part.ts';
import { chooseIndex, isRefusal } from '../resources/query/planner.ts';
import { EVERYTHING, type Selection } from '../rows/selection.ts';
import { KEY } from '../store/bookmark.ts';
import { BSON } from '../store/bson.ts';
import type { Index } from '../store/indexes.ts';
import { PartRows } from '../store/part-rows.ts';
import type { Records } from '../store/records.ts';
import type { Equality, RowReader } from '../store/store.ts';
import { USERS } from './row.ts';
import { metadataFault, USER, USER_PATCH, type UserBody } from './user.ts';

/** The users that a client may see. */
export interface UserSource {
  readonly part: UserPart;
  readonly rows: RowReader;
}

/** A part is kept as long as the rights that open it. */
const parts = new WeakMap<Records, WeakMap<Scope, UserSource>>();

/** The users that a client may see: all, or those of the part that its key opens. */
export function usersFor(users: Records, { key }: Pick<Client, 'key'>): UserSource {
  const scope = key && scopeOf(key.rights, 'users');
  return scope ? usersInPart(users, scope) : { part: ALL_USERS, rows: users };
}

/** Throws Faults when the values of the part are none of users. */
function usersInPart(users: Records, scope: Scope): UserSource {
  const own = getOrMake(parts, users, () => new WeakMap<Scope, UserSource>());
  return getOrMake(own, scope, () => makePart(users, scope));
}

function makePart(users: Records, scope: Scope): UserSource {
  const part = new UserPart(scope);
  const { where } = part;
  const rows = new PartRows(users, { where, hide: scope.hide }, async (_paths, _plan, signal) => {
    const choice = choose(where, (await users.describe(signal)).indexes);
    if (!isRefusal(choice)) return choice.index;
    throw storeUnfit('The index by which the key reads users is gone.', new Error(choice.reason));
  });
  return { part, rows };
}

/** Rejects with Faults when no index answers the values of a part. While the store is away that is not known. */
export async function checkUsers(users: Records, scope: Scope): Promise<null> {
  const { where } = usersInPart(users, scope).part;
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

/**
 * The part of the users that a key opens. Users outside of it are absent. A user that is written has the values before
 * and after. A part that hides fields is only read: a body replaces what its client cannot see.
 */
export class UserPart {
  readonly #values: readonly Value[];
  /** What of the users may be shown. */
  readonly shown: Selection;
  /** Whether all fields of its users are shown. */
  readonly showsAll: boolean;

  /** Throws Faults. */
  constructor({ where, hide }: Scope) {
    const faults: string[] = [];
    this.shown = hiding(EVERYTHING, hide, faults);
    this.showsAll = hide.length === 0;
    const unknown = hide.filter((path) => !isShown(path) && path !== 'id');
    faults.push(...unknown.map((path) => `hide: users have no field ${JSON.stringify(path)}`));
    this.#values = where.map(([path, text]) => valueOf(path, text, faults));
    if (faults.length > 0) throw new Faults(faults);
  }

  /** The values that all its users have. */
  get where(): readonly Equality[] {
    return this.#values.map(({ at, text }) => ({ path: at.join('.'), value: text }));
  }

  /** Whether it has all users. */
  get isWhole(): boolean {
    return this.#values.length === 0;
  }

  /** Whether a stored user is in the part. */
  has(row: Uint8Array): boolean {
    return this.#missing(row).length === 0;
  }

  /** A body with the metadata of the part that it omits. Throws AppError `invalid-body` when they are too many then. */
  complete(body: UserBody): UserBody {
    const texts = new Map<string, string>(Object.entries(body.metadata ?? {}));
    for (const { at, text } of this.#values) {
      const [, name] = at;
      if (name !== undefined && !texts.has(name)) texts.set(name, text);
    }
    if (texts.size === 0) return body;
    const metadata = Object.fromEntries(texts);
    const fault = metadataFault(metadata);
    if (fault !== null) throw invalidBody([{ pointer: '/metadata', detail: fault }]);
    return { ...body, metadata };
  }

  /** Returns a user before it is stored. Throws AppError `invalid-body` unless it is in the part. */
  checked(row: Uint8Array): Uint8Array {
    const missing = this.#missing(row);
    if (missing.length === 0) return row;
    throw invalidBody(
      missing.map(({ at, text }) => ({
        pointer: pointer(at),
        detail: `expected ${JSON.stringify(text)}, which all users have that the key opens`,
      })),
    );
  }

  /** Throws AppError `forbidden` when users of the part cannot be written. */
  checkWritable(): void {
    if (!this.showsAll)
      throw new AppError(
        'forbidden',
        'The key hides fields of users, and a write replaces whole users: it cannot have the right users:write.',
      );
  }

  /** The values of the part that a stored user does not have. */
  #missing(row: Uint8Array): readonly Value[] {
    if (this.isWhole) return [];
    const user = BSON.deserialize(row);
    return this.#values.filter(({ at, text }) => valueAt(user, at) !== text);
  }
}

/** All users, with all fields. */
export const ALL_USERS = new UserPart({ where: [], hide: [] });

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
