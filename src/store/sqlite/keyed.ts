import { BSON } from '../bson.ts';
import { BSON_TYPE } from '../bson-types.ts';
import { KEY, type Bookmark } from '../bookmark.ts';
import { fieldsOf } from '../fields.ts';
import { compareKeys, joinKeys, type Key, type Value } from '../keys.ts';
import { keyOfAny, NULL_KEY } from '../value-keys.ts';
import type { Equality } from '../store.ts';
import type { IndexRecord } from './sets.ts';

/** MongoDB's limit, so that both stores accept the same rows. Bytes. */
const LARGEST_ROW = 16 * 1024 * 1024;
/** Types that MongoDB refuses as the key of a row, too. */
const NO_IDS: readonly number[] = [BSON_TYPE.array, BSON_TYPE.undefined, BSON_TYPE.regularExpression];

/** A row to be written, with its keys. */
export interface KeyedRow {
  readonly document: Uint8Array;
  readonly key: Key;
  /** The key in each index. Null: the index cannot have the row, or is unusable. */
  readonly entries: readonly (Key | null)[];
  /** The indexes that the row makes unusable, with the reason. */
  readonly spoils: readonly { readonly index: number; readonly reason: string }[];
}

/** A row with its keys, or why the store refuses it. */
export function keyRow(document: Uint8Array, indexes: readonly IndexRecord[]): KeyedRow | string {
  if (document.length > LARGEST_ROW) return `a row has at most ${LARGEST_ROW} bytes, got ${document.length}`;
  const fields = fieldsOf(document, [KEY]);
  if (typeof fields === 'string') return fields;
  const [id] = fields;
  if (!id) return '_id is missing';
  if (NO_IDS.includes(id.type)) return `_id is of BSON type ${id.type}, which no key can have`;
  const key = keyOfAny(id);
  const spoils: { index: number; reason: string }[] = [];
  const entries = indexes.map((index, at) => {
    if (index.spoilt !== undefined) return null;
    const parts = partsOf(document, index.paths);
    if (typeof parts !== 'string') return joinKeys(...parts, key);
    spoils.push({ index: at, reason: arrayAt(parts, key) });
    return null;
  });
  return { document, key, entries, spoils };
}

/** The key of the row with an id. Null when no row can have it. */
export function keyOfRow(id: Bookmark): Key | null {
  const values = fieldsOf(id, [KEY]);
  return typeof values === 'string' || !values[0] ? null : keyOfAny(values[0]);
}

/** The key of the value at a path; the path itself when there is an array on it. */
export function keyAt(document: Uint8Array, path: string): Key | string {
  const value = valueAt(document, path.split('.'));
  if (value?.type === BSON_TYPE.array) return path;
  return value ? keyOfAny(value) : NULL_KEY;
}

/** A path, and the key of the value that a row must have there. */
export interface Wanted {
  readonly path: string;
  readonly key: Key;
}

export function wantedOf(equals: readonly Equality[] = []): readonly Wanted[] {
  return equals.map(({ path, value }) => ({ path, key: keyOfNamed(value) }));
}

export function hasValues(document: Uint8Array, wanted: readonly Wanted[]): boolean {
  return wanted.every(({ path, key }) => {
    const found = keyAt(document, path);
    return typeof found !== 'string' && compareKeys(found, key) === 0;
  });
}

/** The key of a value that a plan names. */
export function keyOfNamed(value: unknown): Key {
  if (value === null || value === undefined) return NULL_KEY;
  const named = fieldsOf(BSON.serialize({ value }), ['value']);
  if (typeof named === 'string' || !named[0]) throw new TypeError('a value that BSON cannot write');
  return keyOfAny(named[0]);
}

function partsOf(document: Uint8Array, paths: readonly string[]): Key[] | string {
  const keys: Key[] = [];
  for (const path of paths) {
    const key = keyAt(document, path);
    if (typeof key === 'string') return key;
    keys.push(key);
  }
  return keys;
}

/** The first field of each name counts. Only documents lead further down; an array on the way is returned itself. */
function valueAt(document: Uint8Array, names: readonly string[]): Value | null {
  const [name = '', ...others] = names;
  const fields = fieldsOf(document, [name]);
  if (typeof fields === 'string') throw new TypeError(`a document in a row cannot be read: ${fields}`);
  const [value] = fields;
  if (!value || others.length === 0 || value.type === BSON_TYPE.array) return value ?? null;
  return value.type === BSON_TYPE.document ? valueAt(value.bytes, others) : null;
}

function arrayAt(path: string, key: Key): string {
  return `a row has an array at ${path} (its _id has the key ${Buffer.from(key).toString('hex')})`;
}
