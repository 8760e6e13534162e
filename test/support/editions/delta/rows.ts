import type { Column } from '../../../../src/rows/arrow/columns.ts';
import { below, oneOf, type Random } from '../../store/random-collection.ts';

/** The columns that most values below fit. */
export const COLUMNS: readonly Column[] = [
  { name: 'id', kind: 'text' },
  { name: 'name', kind: 'text' },
  { name: 'price', kind: 'decimal(38,2)' },
  { name: 'at', kind: 'date' },
  { name: 'stock', kind: 'integer' },
  { name: 'weight', kind: 'double' },
  { name: 'active', kind: 'boolean' },
  { name: 'tags', kind: 'json' },
  { name: 'größe', kind: 'double' },
];

const TEXTS = [
  '""',
  '"plain"',
  '"ü\u2028\u{1f600}"',
  '"a\\"b\\\\"',
  '"\\n\\u0001"',
  '"\\u0000"',
  '"\\ud800"',
  '"NaN"',
  '"{}"',
  '"a,\\"b\\":1}"',
];
const DECIMALS = [
  '12.50',
  '0.00',
  '-0.01',
  '12.5',
  '7',
  '7.000',
  '-0.00',
  '0.005',
  '1E+3',
  '1E+40',
  '5E-1',
  '123456789012345678901234567890123456.78',
  '1234567890123456789012345678901234567.8',
];
const DATES = [
  '"2026-11-24T04:00:00.123Z"',
  '"1969-12-31T23:59:59.999Z"',
  '"0001-01-01T00:00:00.000Z"',
  '"9999-12-31T23:59:59.999Z"',
  '"0000-12-31T23:59:59.999Z"',
  '"+275760-09-13T00:00:00.000Z"',
  '"2026-11-24"',
  '"2026-02-30T00:00:00.000Z"',
];
const INTEGERS = [
  '0',
  '-1',
  '9223372036854775807',
  '-9223372036854775808',
  '9223372036854775808',
  '7.00',
  '-0',
  '1e+21',
  '42',
];
const DOUBLES = [
  '0.1',
  '1e+21',
  '5e-324',
  '-1e-7',
  '7',
  '9007199254740993',
  '1.50',
  '1.7976931348623157e+308',
  '123456789012345680000',
  '-0',
];
const BOOLEANS = ['true', 'false', '1', '"true"'];
const OTHERS = ['null', '{"a":[1,{"b":"}"}],"c":null}', '[]', '[1.50,"]"]', '{}', '{"x":"\\\\"}'];

/** Values that fit the column of each name, values of others, and names without a column. */
const VALUES: readonly (readonly [name: string, values: readonly string[]])[] = [
  ['name', TEXTS],
  ['price', DECIMALS],
  ['at', DATES],
  ['stock', INTEGERS],
  ['weight', DOUBLES],
  ['active', BOOLEANS],
  ['tags', OTHERS],
  ['größe', DOUBLES],
  ['Name', TEXTS],
  ['_rest', OTHERS],
  ['a b.c', INTEGERS],
  ['', TEXTS],
];
const ALL = VALUES.flatMap(([, values]) => values);

/** The JSON of a row with this id. */
export function randomRow(id: string, random: Random): string {
  const members = VALUES.filter(() => random() < 0.7).map(([name, values]) => {
    const value = oneOf(random, random() < 0.85 ? values : ALL);
    return `${JSON.stringify(name)}:${value}`;
  });
  if (random() < 0.2) members.reverse();
  if (random() < 0.1) members.push(`"stock":${oneOf(random, INTEGERS)}`); // a name that comes twice
  // A row with a field `id` of its own has its key as `_id`.
  const key = random() < 0.05 ? `"_id":${JSON.stringify(id)},"id":"other"` : `"id":${JSON.stringify(id)}`;
  return `{${[key, ...members].join(',')}}`;
}

/** The rows after some were inserted, changed and removed. */
export function changedRows(
  rows: ReadonlyMap<string, string>,
  changes: number,
  random: Random,
): Map<string, string> {
  const next = new Map(rows);
  for (let n = 0; n < changes; n++) {
    const id = `i${String(below(random, 60)).padStart(4, '0')}`;
    if (random() < 0.25) next.delete(id);
    else next.set(id, randomRow(id, random));
  }
  return next;
}
