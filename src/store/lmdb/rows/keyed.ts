import { BSON } from '../../bson.ts';
import { BSON_TYPE } from '../../bson-types.ts';
import { KEY, type Bookmark } from '../../bookmark.ts';
import { fieldsOf } from '../fields.ts';
import { joinKeys, type Key, type Value } from '../../keys.ts';
import { keyOfAny, NULL_KEY } from '../../value-keys.ts';
import { LONGEST_KEY } from './longest-key.ts';
import type { IndexRecord, ResourceRecord } from './record.ts';

export const LARGEST_ROW = 16 * 1024 * 1024;
/** Types that MongoDB refuses as the key of a row, too. */
export const NO_IDS: readonly number[] = [BSON_TYPE.array, BSON_TYPE.undefined, BSON_TYPE.regularExpression];

/** A row to be written, with the keys of its entries in the indexes that can have one. */
export interface KeyedRow {
  readonly document: Uint8Array;
  /** The value of `_id` as it is in the document. */
  readonly id: Value;
  /** The key of the row in the table of rows. */
  readonly key: Key;
  /** In the order of the resource's indexes. Undefined: the index has no entry of the row. */
  readonly entries: readonly (Key | undefined)[];
  /** The indexes that the row makes unusable, with the reason. */
  readonly spoils: readonly { readonly index: number; readonly reason: string }[];
}

/** The beginning of the keys of a resource's rows. */
export function rowsPrefix({ number }: Pick<ResourceRecord, 'number'>): Key {
  const prefix = new Uint8Array(4);
  new DataView(prefix.buffer).setUint32(0, number);
  return prefix;
}

/** The beginning of the keys of an index's entries. */
export function entriesPrefix(resource: ResourceRecord, { number }: IndexRecord): Key {
  const own = new Uint8Array(2);
  new DataView(own.buffer).setUint16(0, number);
  return joinKeys(rowsPrefix(resource), own);
}

/** A row with its keys, or why the store refuses it. */
export function keyRow(document: Uint8Array, resource: ResourceRecord): KeyedRow | string {
  if (document.length > LARGEST_ROW) return `a row has at most ${LARGEST_ROW} bytes, got ${document.length}`;
  const fields = fieldsOf(document, [KEY]);
  if (typeof fields === 'string') return fields;
  const [id] = fields;
  if (!id) return '_id is missing';
  if (NO_IDS.includes(id.type)) return `_id is of BSON type ${id.type}, which no key can have`;
  const idKey = keyOfAny(id);
  const key = joinKeys(rowsPrefix(resource), idKey);
  if (key.length > LONGEST_KEY) return tooLong('_id', key);
  const entries: (Key | undefined)[] = [];
  const spoils: { index: number; reason: string }[] = [];
  for (const [at, index] of resource.indexes.entries()) {
    const parts = index.spoilt === undefined ? partsOf(document, index.paths) : undefined;
    if (typeof parts === 'string') spoils.push({ index: at, reason: arrayAt(parts, id) });
    if (!Array.isArray(parts)) {
      entries.push(undefined);
      continue;
    }
    const entry = joinKeys(entriesPrefix(resource, index), ...parts, idKey);
    if (entry.length > LONGEST_KEY) return tooLong(index.paths.join(', '), entry);
    entries.push(entry);
  }
  return { document, id, key, entries, spoils };
}

/** The key of the row with an id. Null when no row can have it. */
export function keyOfRow(prefix: Key, id: Bookmark): Key | null {
  const values = fieldsOf(id, [KEY]);
  if (typeof values === 'string' || !values[0]) return null;
  const key = joinKeys(prefix, keyOfAny(values[0]));
  return key.length > LONGEST_KEY ? null : key;
}

/** The key of the value at a path; the path itself when there is an array on it. */
export function keyAt(document: Uint8Array, path: string): Key | string {
  const value = valueAt(document, path.split('.'));
  if (value?.type === BSON_TYPE.array) return path;
  return value ? keyOfAny(value) : NULL_KEY;
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

function tooLong(fields: string, key: Key): string {
  return `the key of ${fields} has ${key.length} bytes, expected at most ${LONGEST_KEY}`;
}

function arrayAt(path: string, id: Value): string {
  return `a row has an array at ${path} (its _id has the key ${Buffer.from(keyOfAny(id)).toString('hex')})`;
}
