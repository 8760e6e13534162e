import { csvLine } from './csv-cell.ts';
import { itemValues } from './item.ts';

/** Converts an item (one BSON document) to a line of CSV, see csv-cell.ts. Throws as itemToJson does. */
export function csvRow(row: Uint8Array, columns: readonly string[], safe: boolean): string {
  return csvLine(itemValues(row, storedNames(columns)), safe);
}

/**
 * The names under which a row stores its columns. `id` is the key, which is stored as `_id`. In a table with a column
 * `_id`, that column is the key of every row, and `id` is the rows' own field.
 */
export function storedNames(columns: readonly string[]): readonly string[] {
  return columns.includes('_id') ? columns : columns.map((name) => (name === 'id' ? '_id' : name));
}
