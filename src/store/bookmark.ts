import { BSON, onDemand } from './bson.ts';
import { exactValues } from './exact-values.ts';

/**
 * Bookmark: the exact key values of a row, as a BSON document: `{_id}` in id order, `{price, _id}` in price order. The
 * bytes of the values are copied from the row. So Int64 and Decimal128 keep their precision, and 1 and 1.0 stay
 * distinct. A missing price is stored as null, as it is in an index.
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

/** The order of rows. Rows of equal price are ordered by id. */
export interface Ordered {
  readonly order: 'id' | 'price';
}

/** The fields that a plan orders by, most significant first. */
export function keyFields(plan: Ordered): readonly string[] {
  return plan.order === 'price' ? ['price', '_id'] : ['_id'];
}

/**
 * The bookmark of a row (one BSON document) in a plan's order. Throws BSON errors when the bytes are not a document.
 */
export function bookmarkOf(row: Uint8Array, plan: Ordered): Bookmark {
  const elements = onDemand.parseToElements(row);
  return join(
    keyFields(plan).map((field) => {
      const element = [...elements].find(([, at, length]) => nameIs(row, at, length, field));
      if (!element) return nullElement(field);
      const [, nameAt, , at, length] = element;
      return row.subarray(nameAt - 1, at + length);
    }),
  );
}

/** Makes a bookmark from values: `{_id}` or `{price, _id}`, with the keys in this order. */
export function makeBookmark(key: { readonly _id: unknown; readonly price?: unknown }): Bookmark {
  const ordered = 'price' in key ? { price: key.price, _id: key._id } : { _id: key._id };
  return BSON.serialize(ordered) as Bookmark;
}

/**
 * The bookmark's values as BSON classes (Int32, Double, Long, ...), so that their types survive when sent in a
 * command.
 */
export function keyOf(bookmark: Bookmark): { _id: unknown; price?: unknown } {
  return exactValues(bookmark) as { _id: unknown; price?: unknown };
}

function nameIs(bytes: Uint8Array, at: number, length: number, name: string): boolean {
  if (length !== name.length) return false;
  for (let i = 0; i < length; i++) if (bytes[at + i] !== name.charCodeAt(i)) return false;
  return true;
}

function nullElement(field: string): Uint8Array {
  return BSON.serialize({ [field]: null }).subarray(4, -1);
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
