import { AppError } from '../errors.ts';
import type { Scope } from '../access/rights.ts';
import { hiding, ScopeFaults } from '../access/scope-faults.ts';
import { parseJson } from '../input/body-json.ts';
import { pointer } from '../input/json-scan.ts';
import { bodyCheck, invalidBody } from '../input/validate.ts';
import { EVERYTHING, type Selection } from '../rows/selection.ts';
import { BSON } from '../store/bson.ts';
import { elementsNamed } from '../store/bson-elements.ts';
import { BSON_TYPE } from '../store/bson-types.ts';
import type { Equality } from '../store/store.ts';
import { metadataFault, USER, USER_PATCH, type UserBody } from './user.ts';

/** A text that all users of a part have: their name, their e-mail address, or one of their metadata. */
interface Value {
  /** Where it is in a user: `['name']`, `['email']` or `['metadata', NAME]`. */
  readonly at: readonly string[];
  readonly text: string;
  /** `at` in UTF-8, and the text as BSON has it. */
  readonly names: readonly Uint8Array[];
  readonly bytes: Uint8Array;
}

/**
 * The part of the users that a key opens. Users outside of it are absent. A user that is written has the values before
 * and after. A part that hides fields is only read: a body replaces what its client cannot see.
 */
export class UserPart {
  readonly #values: readonly Value[];
  readonly #hide: readonly string[];
  /** What of the users may be shown. */
  readonly shown: Selection;

  /** Throws ScopeFaults. */
  constructor({ where, hide }: Scope) {
    const faults: string[] = [];
    this.shown = hiding(EVERYTHING, hide, faults);
    const unknown = hide.filter((path) => !isShown(path) && path !== 'id');
    faults.push(...unknown.map((path) => `hide: users have no field ${JSON.stringify(path)}`));
    this.#hide = hide;
    this.#values = where.map(([path, text]) => valueOf(path, text, faults));
    if (faults.length > 0) throw new ScopeFaults(faults);
  }

  /** The values that all its users have. */
  get where(): readonly Equality[] {
    return this.#values.map(({ at, text }) => ({ path: at.join('.'), value: text }));
  }

  /** Whether it has all users. */
  get isWhole(): boolean {
    return this.#values.length === 0;
  }

  /** Whether all fields of its users are shown. */
  get showsAll(): boolean {
    return this.#hide.length === 0;
  }

  /** Whether a stored user is in the part. */
  has(row: Uint8Array): boolean {
    return this.#values.every((value) => hasValue(row, value));
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

  /** A user that is to be stored. Throws AppError `invalid-body` unless it is in the part. */
  checked(row: Uint8Array): Uint8Array {
    const wrong = this.#values.filter((value) => !hasValue(row, value));
    if (wrong.length === 0) return row;
    throw invalidBody(
      wrong.map(({ at, text }) => ({
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
  return {
    at,
    text: value,
    names: at.map((name) => Buffer.from(name)),
    // A document is its size in 4 bytes, a type, the name `t` with its end, and then the value up to its own last byte.
    bytes: BSON.serialize({ t: value }).subarray(7, -1),
  };
}

const check = bodyCheck(USER_PATCH);

/** Why no user can have this text. */
function faultsOf([field = '', name]: Value['at'], text: string): readonly string[] {
  const value = name === undefined ? text : Object.fromEntries([[name, text]]);
  try {
    check(parseJson(Buffer.from(JSON.stringify({ [field]: value }))));
    return [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return (error.errors ?? []).map(({ detail }) => detail.replace(/; got .*$/s, ''));
  }
}

function hasValue(row: Uint8Array, { names: [field, name], bytes }: Value): boolean {
  if (!field) return false;
  const [found] = elementsNamed(row, [field]);
  if (!found) return false;
  const value = row.subarray(found.valueAt, found.end);
  if (name === undefined) return found.type === BSON_TYPE.string && Buffer.compare(value, bytes) === 0;
  if (found.type !== BSON_TYPE.document) return false;
  const [text] = elementsNamed(value, [name]);
  if (text?.type !== BSON_TYPE.string) return false;
  return Buffer.compare(value.subarray(text.valueAt, text.end), bytes) === 0;
}

/** Whether a path is of a field that users can have. */
function isShown(path: string): boolean {
  return Object.hasOwn(USER.properties, path) || path.startsWith('metadata.');
}
