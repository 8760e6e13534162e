import { reasonOf } from '../../base/error-reason.ts';
import { BSON_TYPE } from './bson-types.ts';
import { valueAt } from './fields.ts';
import { compareKeys, type Key, type Value } from './keys.ts';
import { textOf } from '../bookmark.ts';
import type { Equality, Plan } from '../plan.ts';
import { keyOfAny, keyOfValue, NULL_KEY } from './order.ts';

/** The key of the value at a path; the path itself when there is an array on it. */
export function keyAt(document: Uint8Array, path: string): Key | string {
  const value = readableAt(document, path);
  if (value?.type === BSON_TYPE.array) return path;
  return value ? keyOfAny(value) : NULL_KEY;
}

/** A path, and the key of the value that a row must have there. */
interface RequiredValue {
  readonly path: string;
  readonly key: Key;
}

export function requiredValues(equals: readonly Equality[] = []): readonly RequiredValue[] {
  return equals.map(({ path, value }) => ({ path, key: keyOfValue(value) }));
}

export function hasValues(document: Uint8Array, wanted: readonly RequiredValue[]): boolean {
  return wanted.every(({ path, key }) => {
    const found = keyAt(document, path);
    return typeof found !== 'string' && compareKeys(found, key) === 0;
  });
}

/** Whether a row has the values that a plan names: all of `equals`, and one of `among`. */
export function hasValuesOf({ equals, among }: Pick<Plan, 'equals' | 'among'>): (row: Uint8Array) => boolean {
  const wanted = requiredValues(equals);
  if (!among) return (row) => hasValues(row, wanted);
  const places = new Set(among.values.map((value) => textOf(keyOfValue(value))));
  return (row) => {
    const found = keyAt(row, among.path);
    return typeof found !== 'string' && places.has(textOf(found)) && hasValues(row, wanted);
  };
}

function readableAt(document: Uint8Array, path: string): Value | null {
  try {
    return valueAt(document, path);
  } catch (error) {
    throw new TypeError(`a document in a row cannot be read: ${reasonOf(error)}`, { cause: error });
  }
}
