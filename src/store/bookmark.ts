import { BSON, onDemand } from './bson.ts';

/**
 * Bookmark: the exact key values of a row, as a BSON document: `{_id}` in id order, `{price, _id}` in price order. The
 * bytes of the values are copied from the row, so nothing is lost of Int64, Decimal128 or the difference of 1 and 1.0.
 * A missing price stands as null, as it does in an index.
 */
export type Bookmark = Uint8Array & { readonly __bookmark: true };

/** A point in time of a store's history, in the store's own numbers: 64 bits without sign, later is larger. */
export type PointInTime = bigint;

/**
 * Which collection rows are of: it differs from that of every other collection that ever had the same name (in MongoDB the
 * collection's UUID, 32 hexadecimal digits). A store whose collections cannot be replaced while it is open has none.
 */
export type Identity = string;

/** What rows are ordered by; ties in price by id. */
export interface Ordered {
  readonly order: 'id' | 'price';
}

/** The fields of a plan's order, the most significant first. */
export function keyFields(plan: Ordered): readonly string[] {
  return plan.order === 'price' ? ['price', '_id'] : ['_id'];
}

/** The bookmark of a row (one BSON document) in a plan's order. BSON errors when the bytes are no document. */
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

/** A bookmark made of values: `{_id}` or `{price, _id}` in this order of keys. */
export function makeBookmark(key: { readonly _id: unknown; readonly price?: unknown }): Bookmark {
  const ordered = 'price' in key ? { price: key.price, _id: key._id } : { _id: key._id };
  return BSON.serialize(ordered) as Bookmark;
}

/** The bookmark's values as BSON classes (Int32, Double, Long, ...), so that their types survive a command. */
export function keyOf(bookmark: Bookmark): { _id: unknown; price?: unknown } {
  return BSON.deserialize(bookmark, {
    promoteValues: false,
    promoteBuffers: false,
    validation: { utf8: false },
  }) as { _id: unknown; price?: unknown };
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
