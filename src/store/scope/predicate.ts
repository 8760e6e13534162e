import { onDemand } from '../values/bson.ts';
import { BSON_TYPE } from '../values/bson-types.ts';
import { KEY } from '../bookmark.ts';
import { compareKeys } from '../values/keys.ts';
import { hasValues, keyAt, requiredValues } from '../values/has-values.ts';
import type { Equality } from '../plan.ts';

/** Which rows of a collection a reader may know, and what of them. */
export interface Scope {
  readonly where: readonly Equality[];
  /** The paths of the fields that it must not learn of. */
  readonly hide: readonly string[];
}

/** The paths that decide whether a row is in a scope, and those that are hidden: sorted, each once. */
export interface ScopeFields {
  readonly where: readonly string[];
  readonly hide: readonly string[];
}

/** What the change of a row means for the readers of a scope. */
export interface ScopePredicate {
  /** Scopes by other values of the same fields have the same ones. */
  readonly fields: ScopeFields;
  /** Whether a row, of which at least the fields `where` are known, is in the scope. */
  readonly matches: (row: Uint8Array) => boolean;
}

export function predicateOf({ where, hide }: Scope): ScopePredicate {
  const wanted = requiredValues(where);
  return {
    fields: { where: sorted(where.map(({ path }) => path)), hide: sorted(hide) },
    matches: (row) => hasValues(row, wanted),
  };
}

function sorted(paths: readonly string[]): readonly string[] {
  return [...new Set(paths)].sort();
}

/** Whether the readers of scopes by these fields see no difference between two states of a row. */
export function isUnseen(before: Uint8Array, after: Uint8Array, { where, hide }: ScopeFields): boolean {
  if (hide.length === 0) return false;
  // A field by which the row is in a scope may be hidden itself.
  return isSameButHidden(before, after, hide) && where.every((path) => isSameAt(before, after, path));
}

function isSameAt(before: Uint8Array, after: Uint8Array, path: string): boolean {
  const one = keyAt(before, path);
  const other = keyAt(after, path);
  if (typeof one === 'string' || typeof other === 'string') return one === other; // an array is in no scope
  return compareKeys(one, other) === 0;
}

/** A field that is shown, with its bytes, and what is hidden inside it. */
interface ShownField {
  readonly type: number;
  readonly name: string;
  readonly value: Uint8Array;
  readonly hide: readonly string[];
}

/**
 * Whether two states of a row look the same to a reader who does not see what lies at these paths. A path hides as it does
 * in answers (rows/selection.ts): it goes through arrays, a name may have dots itself, and the key is always seen. Values
 * that are equal but of different types, such as 7 and 7.0, do not look the same.
 */
export function isSameButHidden(before: Uint8Array, after: Uint8Array, hide: readonly string[]): boolean {
  return isSame(shownFields(before, hide, true), shownFields(after, hide, true));
}

function isSame(before: readonly ShownField[], after: readonly ShownField[]): boolean {
  return (
    before.length === after.length &&
    before.every((one, n) => {
      const other = after[n];
      return other?.type === one.type && other.name === one.name && isSameValue(one, other);
    })
  );
}

function isSameValue(one: ShownField, other: ShownField): boolean {
  if (one.hide.length === 0) return Buffer.compare(one.value, other.value) === 0;
  const isArray = one.type === BSON_TYPE.array;
  const membersOf = ({ value, hide }: ShownField) =>
    isArray ? elements(value, hide) : shownFields(value, hide);
  return isSame(membersOf(one), membersOf(other));
}

function shownFields(document: Uint8Array, hide: readonly string[], isRow = false): readonly ShownField[] {
  return membersIn(document).flatMap(({ type, name, value }): ShownField[] => {
    if (isRow && name === KEY) return [{ type, name, value, hide: [] }];
    if (hide.some((path) => name === path || name.startsWith(`${path}.`))) return [];
    const below = hide.flatMap((path) => (path.startsWith(`${name}.`) ? path.slice(name.length + 1) : []));
    return [{ type, name, value, hide: isNested(type) ? below : [] }];
  });
}

function elements(array: Uint8Array, hide: readonly string[]): readonly ShownField[] {
  return membersIn(array).map((one) => ({ ...one, hide: isNested(one.type) ? hide : [] }));
}

function membersIn(bytes: Uint8Array): readonly Omit<ShownField, 'hide'>[] {
  return Array.from(onDemand.parseToElements(bytes), ([type, nameAt, nameLength, at, length]) => ({
    type,
    name: Buffer.from(bytes.buffer, bytes.byteOffset + nameAt, nameLength).toString(),
    value: bytes.subarray(at, at + length),
  }));
}

function isNested(type: number): boolean {
  return type === BSON_TYPE.document || type === BSON_TYPE.array;
}
