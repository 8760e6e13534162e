import { ObjectId } from '../store/bson.ts';
import { encodeItem, type Columns, type Fields } from './item.ts';
import { BadRow } from './row.ts';
import { quoted } from '../terminal/text.ts';
import { checkName, storedValue } from './value.ts';

/**
 * The item of a JSON row, as BSON: its top-level fields in their order, mapped fields under their new names,
 * `_id` first. Throws BadRow when the row cannot become an item.
 */
export function itemOfObject(row: unknown, columns: Columns): Uint8Array {
  if (row === null || typeof row !== 'object' || Array.isArray(row)) {
    throw new BadRow('it is not a JSON object');
  }
  const object = row as Record<string, unknown>;
  const idColumn = columns.id ?? (Object.hasOwn(object, '_id') ? '_id' : 'id');
  if (columns.id !== null && !Object.hasOwn(object, columns.id)) {
    throw new BadRow(`it has no field ${columns.id} for its id`);
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
    if (error instanceof BadRow) throw new BadRow(`in its field ${quoted(name)}: ${error.message}`);
    throw error;
  }
}

/**
 * Whether a column stays a field under its own name. It does not when it was mapped to another field, or when
 * a mapped column took its name.
 */
export function keepsItsName(name: string, idColumn: string | null, columns: Columns): boolean {
  if (name === columns.category || name === columns.price || name === idColumn) return false;
  if (name === '_id' || name === 'category' || name === 'price') return false;
  return !(name === 'id' && columns.id !== null && columns.id !== '_id');
}
