import { MAX_KEY_BYTES } from '../items/query.ts';
import { Binary, BSON, Decimal128, Double, Int32, Long, ObjectId } from '../store/bson.ts';
import { UsageError } from '../terminal/arguments.ts';
import { quoted } from '../terminal/text.ts';
import { cellValue, priceOfCell, TooManyDigits } from './numbers.ts';
import { BadRow, BrokenSource } from './row.ts';
import { checkName, nameFault, storedValue, tooManyDigits } from './values.ts';

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

/** Makes the item of one CSV row, as BSON. Throws BadRow when the row cannot become an item. */
export type ItemOfCells = (cells: readonly string[]) => Uint8Array;

/**
 * The item of a JSON row, as BSON: its top-level fields in their order, mapped fields under their new names,
 * `_id` first. Throws BadRow when the row cannot become an item.
 */
export function itemOfObject(row: unknown, columns: Columns): Uint8Array {
  if (row === null || typeof row !== 'object' || Array.isArray(row)) {
    throw new BadRow('the row is not a JSON object');
  }
  const object = row as Record<string, unknown>;
  const idColumn = columns.id ?? (Object.hasOwn(object, '_id') ? '_id' : 'id');
  if (columns.id !== null && !Object.hasOwn(object, columns.id)) {
    throw new BadRow(`the row has no field ${quoted(columns.id)} for the id`);
  }
  const fields: Fields = new Map();
  fields.set('_id', undefined); // reserves the first place
  for (const [name, value] of Object.entries(object)) {
    checkName(name);
    const stored = storedField(name, value);
    if (name === idColumn) fields.set('_id', stored);
    if (name === columns.category) fields.set('category', stored);
    if (name === columns.price) fields.set('price', stored);
    if (keepsItsName(name, idColumn, columns)) fields.set(name, stored);
  }
  if (!Object.hasOwn(object, idColumn)) fields.set('_id', new ObjectId());
  return encodeItem(fields);
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
 * Returns the function that turns the rows under this header into items. Each cell becomes a field under its
 * column's name, with numbers as numbers (see numbers.ts). An empty cell becomes no field. Throws UsageError
 * when a mapped column is not in the header, and BrokenSource when the header's names cannot be field names.
 */
export function itemsUnderHeader(header: readonly string[], columns: Columns): ItemOfCells {
  checkHeader(header);
  const idColumn = columns.id ?? ['_id', 'id'].find((name) => header.includes(name)) ?? null;
  const at = (name: string, option: string): number => columnAt(header, name, option);
  const categoryAt = at(columns.category, '--category');
  const priceAt = at(columns.price, '--price');
  const readId = idColumn === null ? () => new ObjectId() : idReader(at(idColumn, '--id'));
  const kept = header.map((name) => keepsItsName(name, idColumn, columns));

  return (cells) => {
    const fields: Fields = new Map();
    fields.set('_id', readId(cells));
    for (const [index, cell] of cells.entries()) {
      if (index === categoryAt) fields.set('category', categoryOf(cell, columns.category));
      if (index === priceAt) fields.set('price', priceOf(cell, columns.price));
      if (kept[index] && cell !== '') fields.set(header[index] ?? '', cellValue(cell));
    }
    return encodeItem(fields);
  };
}

function checkHeader(header: readonly string[]): void {
  const seen = new Set<string>();
  for (const [index, name] of header.entries()) {
    if (name === '') throw new BrokenSource(`column ${index + 1} has no name in the header row`);
    const fault = seen.has(name) ? 'appears twice' : nameFault(name);
    if (fault !== null) throw new BrokenSource(`the column name ${quoted(name)} in the header row ${fault}`);
    seen.add(name);
  }
}

function columnAt(header: readonly string[], name: string, option: string): number {
  const index = header.indexOf(name);
  if (index >= 0) return index;
  const known = header.map((column) => quoted(column)).join(', ');
  throw new UsageError(
    `the file has no column ${quoted(name)}; name one with ${option}. The columns are: ${known}`,
  );
}

/**
 * All ids of one file are of one kind, integers or texts, as the first one is. A URL would find only some ids
 * of a mix (`8`, `007`), since the text in a URL is read as the one type that a collection's ids have.
 */
function idReader(index: number): (cells: readonly string[]) => string | number | Long {
  let integers: boolean | null = null;
  return (cells) => {
    const cell = cells[index] ?? '';
    if (cell === '') throw new BadRow('the id is empty');
    const value = cellValue(cell);
    const integer = value instanceof Long || Number.isSafeInteger(value) ? (value as number | Long) : null;
    integers ??= integer !== null;
    if (!integers) return cell;
    if (integer === null) throw new BadRow(`the id ${quoted(cell)} is not an integer, but the first id is`);
    return integer;
  };
}

function categoryOf(cell: string, column: string): string {
  if (cell === '') throw new BadRow(`the row has no category: the cell in column ${quoted(column)} is empty`);
  return cell;
}

function priceOf(cell: string, column: string): number | Long | Decimal128 {
  if (cell === '') throw new BadRow(`the row has no price: the cell in column ${quoted(column)} is empty`);
  const price = priceOfCell(cell);
  if (price === null) throw new BadRow(`the price is ${quoted(cell)}; expected a finite number`);
  if (price instanceof TooManyDigits)
    throw new BadRow(`column ${quoted(column)}: ${tooManyDigits(cell).message}`);
  return price;
}

/**
 * Whether a column stays a field under its own name. It does not when it was mapped to another field, or when
 * a mapped column took its name.
 */
function keepsItsName(name: string, idColumn: string | null, columns: Columns): boolean {
  if (name === columns.category || name === columns.price || name === idColumn) return false;
  if (name === '_id' || name === 'category' || name === 'price') return false;
  return !(name === 'id' && columns.id !== null && columns.id !== '_id');
}

/**
 * Encodes an item as a BSON document. Throws BadRow when id, category or price are missing or invalid, or
 * when the item is too large.
 */
export function encodeItem(fields: Fields): Uint8Array {
  checkId(fields.get('_id'));
  checkCategory(fields.get('category'));
  checkPrice(fields.get('price'));
  const item = serialize(fields);
  if (item.length > MAX_ITEM_BYTES)
    throw new BadRow(`the item has ${item.length} bytes; the maximum is 16 MB`);
  return item;
}

function serialize(fields: Fields): Uint8Array {
  try {
    return BSON.serialize(fields);
  } catch (error) {
    // Everything that comes here is data. So it is the row's fault when bson cannot write it (a field named
    // _bsontype, over 17 MB).
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
