import { MAX_KEY_BYTES } from '../items/query.ts';
import { Binary, BSON, BSONRegExp, Decimal128, Double, Int32, Long, MaxKey, MinKey } from '../store/bson.ts';
import { ObjectId } from '../store/bson.ts';
import { quoted } from '../terminal/text.ts';
import { membersOf } from './extended-json.ts';
import type { FieldTypes } from './field-types.ts';
import type { Fields } from './paths.ts';
import { BadRow } from './row.ts';
import { checkName, storedValue } from './values.ts';

/** MongoDB's limit for one document. */
const MAX_ITEM_BYTES = 16 * 1024 * 1024;

/**
 * Which columns (of a CSV) or top-level fields (of a JSON row) become which fields of the item. A mapped
 * column is not kept under its own name as well. It replaces any other value that the row has under the
 * field's name.
 */
export interface Columns {
  /** null, and `price` too: the rows of a resource, whose columns keep their names. */
  readonly category: string | null;
  readonly price: string | null;
  /**
   * The column of the id. null: `_id`, else `id`, else a new ObjectId. When it is named, every row must have
   * it.
   */
  readonly id: string | null;
}

/**
 * The item of a JSON row, as BSON: its top-level fields in their order, mapped fields under their new names,
 * `_id` first. `types` gives values the kinds that were declared. Throws BadRow when the row cannot become an item.
 */
export function itemOfObject(row: unknown, columns: Columns, types: FieldTypes): Uint8Array {
  if (row === null || typeof row !== 'object' || Array.isArray(row)) {
    throw new BadRow('the row is not a JSON object');
  }
  const members = membersOf(row);
  const idColumn = columns.id ?? (members.has('_id') ? '_id' : 'id');
  if (columns.id !== null && !members.has(columns.id)) {
    throw new BadRow(`the row has no field ${quoted(columns.id)} for the id`);
  }
  const fields: Fields = new Map();
  fields.set('_id', undefined); // reserves the first place
  for (const [name, value] of members) {
    checkName(name);
    const stored = types.apply(name, storedField(name, value));
    if (name === idColumn) fields.set('_id', stored);
    if (name === columns.category) fields.set('category', stored);
    if (name === columns.price) fields.set('price', stored);
    if (keepsItsName(name, idColumn, columns)) fields.set(name, stored);
  }
  if (!members.has(idColumn)) fields.set('_id', new ObjectId());
  return columns.price === null ? encodeRow(fields) : encodeItem(fields);
}

/**
 * The stored form of a field's value. Throws BadRow, which names the field, when the value cannot be stored.
 */
function storedField(name: string, value: unknown): unknown {
  try {
    return storedValue(value);
  } catch (error) {
    if (error instanceof BadRow) throw new BadRow(`field ${quoted(name)}: ${error.message}`);
    throw error;
  }
}

/**
 * Whether a column stays a field under its own name. It does not when it was mapped to another field, or when
 * a mapped column took its name, or that of the document `outer` that it would be in.
 */
export function keepsItsName(
  name: string,
  idColumn: string | null,
  columns: Columns,
  outer: string = name,
): boolean {
  if (name === columns.category || name === columns.price || name === idColumn) return false;
  if (columns.price === null) return outer !== '_id';
  if (outer === '_id' || outer === 'category' || outer === 'price') return false;
  return !(outer === 'id' && columns.id !== null && columns.id !== '_id');
}

/**
 * Encodes an item as a BSON document. Throws BadRow when id, category or price are missing or invalid, or
 * when the item is too large.
 */
export function encodeItem(fields: Fields): Uint8Array {
  checkId(fields.get('_id'));
  checkCategory(fields.get('category'));
  checkPrice(fields.get('price'));
  return serialized(fields, 'item');
}

/** Encodes a row of a resource as a BSON document. Throws BadRow when no document can have its id, or it is too large. */
export function encodeRow(fields: Fields): Uint8Array {
  const id = fields.get('_id');
  const isNone = id === null || id === undefined || Array.isArray(id);
  if (isNone || [BSONRegExp, MinKey, MaxKey].some((type) => id instanceof type))
    throw new BadRow(`the id is ${described(id)}; expected a value that is not null and no array`);
  if (typeof id === 'string') checkLength('id', id);
  return serialized(fields, 'row');
}

function serialized(fields: Fields, what: string): Uint8Array {
  const row = serialize(fields);
  if (row.length > MAX_ITEM_BYTES)
    throw new BadRow(`the ${what} has ${row.length} bytes; the maximum is 16 MB`);
  return row;
}

/** The fields as a BSON document. Throws BadRow when bson cannot write them. */
export function serialize(fields: Fields): Uint8Array {
  try {
    return BSON.serialize(fields);
  } catch (error) {
    // Everything that comes here is data. So it is the row's fault when bson cannot write it (over 17 MB).
    if (!(error instanceof Error)) throw error;
    throw new BadRow(`the row cannot be written as BSON: ${error.message}`);
  }
}

function checkId(id: unknown): void {
  if (id instanceof ObjectId || id instanceof Int32 || id instanceof Long || isUuid(id)) return;
  if (typeof id === 'string') {
    checkLength('id', id);
    return;
  }
  const number = id instanceof Double ? id.value : id;
  if (Number.isSafeInteger(number)) return;
  throw new BadRow(`the id is ${described(id)}; expected a string, an integer, an ObjectId or a UUID`);
}

function isUuid(id: unknown): boolean {
  return id instanceof Binary && id.sub_type === Binary.SUBTYPE_UUID;
}

function checkCategory(category: unknown): void {
  if (category === undefined) throw new BadRow('the row has no category');
  if (typeof category !== 'string')
    throw new BadRow(`the category is ${described(category)}; expected a string`);
  if (category !== '') checkLength('category', category);
}

function checkLength(field: string, text: string): void {
  if (text === '') throw new BadRow(`the ${field} is empty`);
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_KEY_BYTES)
    throw new BadRow(`the ${field} has ${bytes} bytes; the maximum is ${MAX_KEY_BYTES}`);
}

function checkPrice(price: unknown): void {
  if (price === undefined) throw new BadRow('the row has no price');
  if (price instanceof Decimal128 && /\d/.test(price.toString())) return; // it may exceed the range of a double
  const number =
    price instanceof Double || price instanceof Int32
      ? price.value
      : price instanceof Long
        ? Number(price.toString())
        : price;
  if (Number.isFinite(number)) return;
  throw new BadRow(`the price is ${described(price)}; expected a finite number`);
}

function described(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return `the string ${quoted(value)}`;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'an array';
  const known = value instanceof Double || value instanceof Int32 || value instanceof Decimal128;
  return known ? value.toString() : value instanceof Date ? 'a date' : 'an object';
}
