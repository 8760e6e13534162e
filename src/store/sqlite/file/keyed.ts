import { BSON_TYPE } from '../../values/bson-types.ts';
import { KEY } from '../../bookmark.ts';
import { fieldsOf } from '../../values/fields.ts';
import { keyAt } from '../../values/has-values.ts';
import { joinKeys, type Key } from '../../values/keys.ts';
import { keyOfAny } from '../../values/order.ts';
import type { IndexRecord } from './collections.ts';

/** MongoDB's limit, so that both stores accept the same rows. Bytes. */
const LARGEST_ROW = 16 * 1024 * 1024;
/** Types that MongoDB refuses as the key of a row, too. */
const NO_IDS: readonly number[] = [BSON_TYPE.array, BSON_TYPE.undefined, BSON_TYPE.regularExpression];

export interface KeyedRow {
  readonly document: Uint8Array;
  readonly key: Key;
  /** The key in each index. Null: the index cannot have the row, or is unusable. */
  readonly entries: readonly (Key | null)[];
  /** The indexes that the row makes unusable, with the reason. */
  readonly unusable: readonly { readonly index: number; readonly reason: string }[];
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
  const unusable: { index: number; reason: string }[] = [];
  const entries = indexes.map((index, at) => {
    if (index.unusable !== undefined) return null;
    const parts = partsOf(document, index.paths);
    if (typeof parts !== 'string') return joinKeys(...parts, key);
    const hex = Buffer.from(key).toString('hex');
    unusable.push({ index: at, reason: `a row has an array at ${parts} (its _id has the key ${hex})` });
    return null;
  });
  return { document, key, entries, unusable };
}

/** The key of the row with an id. Null when no row can have it. */
export function keyOfRow(id: Uint8Array): Key | null {
  const values = fieldsOf(id, [KEY]);
  return typeof values === 'string' || !values[0] ? null : keyOfAny(values[0]);
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
