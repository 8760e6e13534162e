import { ArrowRows } from './arrow.ts';
import { CsvRows } from './csv.ts';
import { JsonArrayRows } from './json.ts';
import type { RowReading } from './reading.ts';

/** The formats that the load test reads. */
export const FORMATS = ['ndjson', 'json', 'csv', 'arrow'] as const;

const TYPES: Readonly<Record<string, string>> = {
  json: 'application/json',
  csv: 'text/csv',
  arrow: 'application/vnd.apache.arrow.stream',
};

/** The content type of a form that has no checkpoint lines. */
export function typeOf(format: string): string {
  const type = TYPES[format];
  if (type === undefined) throw new TypeError(`${format} is read by its lines`);
  return type;
}

/** The forms that have no checkpoint lines. `isProved`: whether the body itself says how many rows it has, and their CRC. */
export function rowReading(format: string): { readonly reading: RowReading; readonly isProved: boolean } {
  if (format === 'arrow') return { reading: new ArrowRows(), isProved: true };
  if (format === 'csv') return { reading: new CsvRows(), isProved: false };
  if (format === 'json') return { reading: new JsonArrayRows(), isProved: false };
  throw new TypeError(`${format} is read by its lines`);
}
