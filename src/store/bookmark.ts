import { BSON } from './values/bson.ts';
import { documentWith, elementOf } from './values/bson-elements.ts';
import { BSON_TYPE } from './values/bson-types.ts';
import { exactValues } from './values/exact-values.ts';
import { valueAt } from './values/fields.ts';
import type { Value } from './values/keys.ts';

/**
 * Bookmark: the exact key values of a row, as a BSON document: `{_id}` in the order of the key, `{PATH: value, _id}` in
 * the order of a path, and with its own value behind them where a plan has several. The bytes of the values are copied from the row. So Int64 and Decimal128 keep their precision,
 * and 1 and 1.0 stay distinct. A missing value is stored as null, as it is in an index.
 */
export type Bookmark = Uint8Array & { readonly __bookmark: true };

/** A point in time of a store, in its own units: an unsigned 64-bit number. Later times are larger. */
export type PointInTime = bigint;

/**
 * Identifies a collection among all that ever had its name (MongoDB: its UUID, 32 hexadecimal digits). Stores whose
 * collections cannot be replaced while open have none.
 */
export type Identity = string;

/** The path of every row's key. */
export const KEY = '_id';

/** Why a row is refused whose id exists. */
export const KEY_EXISTS = 'a row with its _id exists';

/**
 * The order of rows: by the value of a path, and rows of equal value by their key. `_id`: by the key alone. `among`: before
 * that, by the place of their value of a path in a list (see `Plan.among`).
 */
export interface RowOrder {
  readonly sort: string;
  readonly among?: { readonly path: string };
}

/** The paths that a plan orders by, most significant first, but that of `among` last: places of the others do not move. */
export function keyPaths({ sort, among }: RowOrder): readonly string[] {
  const own = sort === KEY ? [KEY] : [sort, KEY];
  return among === undefined || among.path === KEY ? own : [...own, among.path];
}

/** The bookmark of a row (a BSON document) in a plan's order. Throws BSON errors for other bytes. */
export function bookmarkOf(row: Uint8Array, plan: RowOrder): Bookmark {
  return valuesAt(row, keyPaths(plan));
}

/** The value of a row at a path, as a bookmark `{PATH: value}`. A missing value is null. Throws as `bookmarkOf` does. */
export function valueBookmarkOf(row: Uint8Array, path: string): Bookmark {
  return valuesAt(row, [path]);
}

/** Makes a bookmark from the value of the path that rows are ordered by, if they are, and the key. */
export function makeBookmark({
  _id,
  ...sort
}: { readonly _id: unknown } & Readonly<Record<string, unknown>>): Bookmark {
  return BSON.serialize({ ...sort, _id }) as Bookmark;
}

/** Its values as BSON classes (Int32, Double, Long, ...), so that their types survive in a command. */
export function keyOf(bookmark: Bookmark): RowKey {
  return exactValues(bookmark) as RowKey;
}

/** The values of a bookmark, by path: that of the path that rows are ordered by, if they are, and `_id`. */
export type RowKey = { readonly _id: unknown } & Readonly<Record<string, unknown>>;

/** The values of a row at paths, each with its path as its name. A missing value is null. */
function valuesAt(row: Uint8Array, paths: readonly string[]): Bookmark {
  const elements = paths.map((path) => {
    const { type, bytes } = valueAt(row, path) ?? NULL;
    return elementOf(type, path, bytes);
  });
  return documentWith(...elements) as Bookmark;
}

const NULL: Value = { type: BSON_TYPE.null, bytes: new Uint8Array(0) };

/** Bytes as a text, for maps. Equal values of different types have different texts. */
export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}
