import { Binary, BSON, Decimal128, Double, Int32, Long, ObjectId } from '../store/bson.ts';
import { MAX_KEY_BYTES } from '../items/query.ts';
import { BadRow } from './row.ts';
import { quoted } from '../terminal/text.ts';

/** MongoDB's limit for one document. */
const MAX_ITEM_BYTES = 16 * 1024 * 1024;

/**
 * Which columns (of a CSV) or top-level fields (of a JSON row) become which fields of the item. A mapped
 * column is not kept under its own name as well. It replaces any other value that the row has under the
 * field's name.
 */
export interface Columns {
  readonly category: string;
  readonly price: string;
  /**
   * The column of the id. null: `_id`, else `id`, else a new ObjectId. When it is named, every row must have
   * it.
   */
  readonly id: string | null;
}

/**
 * The fields of an item, `_id` first. It is a Map because an object would move names like `2024` to the
 * front.
 */
export type Fields = Map<string, unknown>;

/**
 * Encodes an item as a BSON document. Throws BadRow when id, category or price are missing or invalid, or
 * when the item is too large.
 */
export function encodeItem(fields: Fields): Uint8Array {
  checkId(fields.get('_id'));
  checkCategory(fields.get('category'));
  checkPrice(fields.get('price'));
  const item = serialize(fields);
  if (item.length > MAX_ITEM_BYTES) throw new BadRow(`it has ${item.length} bytes; an item may have 16 MB`);
  return item;
}

function serialize(fields: Fields): Uint8Array {
  try {
    return BSON.serialize(fields);
  } catch (error) {
    // Everything that comes here is data. So it is the row's fault when bson cannot write it (a field named
    // _bsontype, over 17 MB).
    if (!(error instanceof Error)) throw error;
    throw new BadRow(`it cannot be written as BSON: ${error.message}`);
  }
}

function checkId(id: unknown): void {
  if (id instanceof ObjectId || id instanceof Int32 || id instanceof Long || isUuid(id)) return;
  if (typeof id === 'string') {
    checkText('id', id);
    return;
  }
  const number = id instanceof Double ? id.value : id;
  if (Number.isSafeInteger(number)) return;
  throw new BadRow(`its id is ${described(id)}; expected a text, an integer, an ObjectId or a UUID`);
}

function isUuid(id: unknown): boolean {
  return id instanceof Binary && id.sub_type === Binary.SUBTYPE_UUID;
}

function checkCategory(category: unknown): void {
  if (category === undefined) throw new BadRow('it has no category');
  if (typeof category !== 'string')
    throw new BadRow(`its category is ${described(category)}; expected a text`);
  if (category !== '') checkText('category', category);
}

function checkText(what: string, text: string): void {
  if (text === '') throw new BadRow(`its ${what} is empty`);
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_KEY_BYTES)
    throw new BadRow(`its ${what} has ${bytes} bytes; at most ${MAX_KEY_BYTES} may be`);
}

function checkPrice(price: unknown): void {
  if (price === undefined) throw new BadRow('it has no price');
  if (price instanceof Decimal128 && /\d/.test(price.toString())) return; // it may exceed the range of a double
  const number =
    price instanceof Double || price instanceof Int32
      ? price.value
      : price instanceof Long
        ? Number(price.toString())
        : price;
  if (Number.isFinite(number)) return;
  throw new BadRow(`its price is ${described(price)}; expected a finite number`);
}

function described(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return `the text ${quoted(value)}`;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'an array';
  const known = value instanceof Double || value instanceof Int32 || value instanceof Decimal128;
  return known ? value.toString() : value instanceof Date ? 'a date' : 'an object';
}
