import { csvLine } from './csv-cell.ts';
import { itemValues } from './item.ts';

/** An item (one BSON document) as a line of CSV, see csv-cell.ts. Throws as itemToJson does. */
export function csvRow(row: Uint8Array, columns: readonly string[], safe: boolean): string {
  return csvLine(itemValues(row, columns.map(storedName)), safe);
}

/** The name under which a row has a column: `id` is its `_id`. */
export function storedName(column: string): string {
  return column === 'id' ? '_id' : column;
}
