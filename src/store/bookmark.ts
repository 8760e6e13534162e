import { BSON } from './bson.ts';
import { elementsNamed } from './bson-elements.ts';
import { BSON_TYPE } from './bson-types.ts';
import { exactValues } from './exact-values.ts';

/**
 * Bookmark: the exact key values of a row, as a BSON document: `{_id}` in the order of the key, `{PATH: value, _id}` in
 * the order of a path. The bytes of the values are copied from the row. So Int64 and Decimal128 keep their precision,
 * and 1 and 1.0 stay distinct. A missing value is stored as null, as it is in an index.
 */
export type Bookmark = Uint8Array & { readonly __bookmark: true };

/**
 * A point in time of a store's history, in the store's own units: an unsigned 64-bit number. Later times are larger.
 */
export type PointInTime = bigint;

/**
 * Identifies the collection that rows come from. It differs from that of every other collection that ever had the same
 * name. (MongoDB: the collection's UUID, 32 hexadecimal digits.) Stores whose collections cannot be replaced while
 * open have none.
 */
export type Identity = string;

/** The path of every row's key. */
export const KEY = '_id';

/** The order of rows: by the value of a path, and rows of equal value by their key. `_id`: by the key alone. */
export interface Ordered {
  readonly sort: string;
}

/** The paths that a plan orders by, most significant first. */
export function keyPaths({ sort }: Ordered): readonly string[] {
  return sort === KEY ? [KEY] : [sort, KEY];
}

/**
 * The bookmark of a row (one BSON document) in a plan's order. Throws BSON errors when the bytes are not a document.
 */
export function bookmarkOf(row: Uint8Array, plan: Ordered): Bookmark {
  return join(keyPaths(plan).map((path) => elementAt(row, path)));
}

/** The value of a row at a path, as a bookmark `{PATH: value}`. A missing value is null. Throws as `bookmarkOf` does. */
export function valueBookmarkOf(row: Uint8Array, path: string): Bookmark {
  return join([elementAt(row, path)]);
}

/** Makes a bookmark from the value of the path that rows are ordered by, if they are, and the key. */
export function makeBookmark({
  _id,
  ...sort
}: { readonly _id: unknown } & Readonly<Record<string, unknown>>): Bookmark {
  return BSON.serialize({ ...sort, _id }) as Bookmark;
}

/**
 * The bookmark's values as BSON classes (Int32, Double, Long, ...), so that their types survive when sent in a
 * command.
 */
export function keyOf(bookmark: Bookmark): RowKey {
  return exactValues(bookmark) as RowKey;
}

/** The values of a bookmark, by path: that of the path that rows are ordered by, if they are, and `_id`. */
export type RowKey = { readonly _id: unknown } & Readonly<Record<string, unknown>>;

/**
 * The element of a row at a path, with the path as its name; null when there is none. The first field of each name
 * counts, as in an index. Only documents lead further down: an array on the way is returned itself, so that a caller
 * that orders by it notices.
 */
function elementAt(row: Uint8Array, path: string): Uint8Array {
  let document = row;
  const names = namesOf(path);
  for (const [depth, name] of names.entries()) {
    const [found] = elementsNamed(document, [name]);
    if (!found) return elementOf(BSON_TYPE.null, path, NOTHING);
    const { type, at, valueAt, end } = found;
    if (names.length === 1) return document.subarray(at, end);
    const value = document.subarray(valueAt, end);
    if (depth === names.length - 1 || type === BSON_TYPE.array) return elementOf(type, path, value);
    if (type !== BSON_TYPE.document) return elementOf(BSON_TYPE.null, path, NOTHING);
    document = value;
  }
  throw new TypeError('a path has a name');
}

const NOTHING = new Uint8Array(0);

function elementOf(type: number, name: string, value: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(type), Buffer.from(name), Uint8Array.of(0), value]);
}

/** The names in each path that rows were ordered by, in UTF-8. They are few: those of indexes. */
const NAMES = new Map<string, readonly Uint8Array[]>();

function namesOf(path: string): readonly Uint8Array[] {
  const known = NAMES.get(path);
  if (known) return known;
  const names = path.split('.').map((name) => Buffer.from(name));
  NAMES.set(path, names);
  return names;
}

function join(elements: readonly Uint8Array[]): Bookmark {
  const size = elements.reduce((sum, element) => sum + element.length, 5);
  const bytes = new Uint8Array(size);
  new DataView(bytes.buffer).setInt32(0, size, true);
  let at = 4;
  for (const element of elements) {
    bytes.set(element, at);
    at += element.length;
  }
  return bytes as Bookmark;
}

/** Bytes as a text, for maps. Equal values of different types have different texts. */
export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}
