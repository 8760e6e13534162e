import { Decimal128, Long, ObjectId } from '../store/bson.ts';
import { TooManyDigits } from './digits.ts';
import { encodeItem, type Columns, type Fields } from './item.ts';
import { cellValue, priceOfCell } from './number.ts';
import { keepsItsName } from './object.ts';
import { BadRow, BrokenSource } from './row.ts';
import { quoted } from '../terminal/text.ts';
import { UsageError } from '../terminal/arguments.ts';
import { faultOfName, tooManyDigits } from './value.ts';

/** Makes the item of one CSV row, as BSON. Throws BadRow when the row cannot become an item. */
export type ItemOfCells = (cells: readonly string[]) => Uint8Array;

/**
 * Returns the function that turns the rows under this header into items. Each cell becomes a field under its
 * column's name, with numbers as numbers (see number.ts). An empty cell becomes no field. Throws UsageError
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
    const fault = seen.has(name) ? 'is there twice' : faultOfName(name);
    if (fault !== null) throw new BrokenSource(`the header row's column ${quoted(name)} ${fault}`);
    seen.add(name);
  }
}

function columnAt(header: readonly string[], name: string, option: string): number {
  const index = header.indexOf(name);
  if (index >= 0) return index;
  const known = header.map((column) => quoted(column)).join(', ');
  throw new UsageError(
    `the file has no column ${quoted(name)}; name one with ${option}. Its columns: ${known}`,
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
    if (cell === '') throw new BadRow('its id is empty');
    const value = cellValue(cell);
    const integer = value instanceof Long || Number.isSafeInteger(value) ? (value as number | Long) : null;
    integers ??= integer !== null;
    if (!integers) return cell;
    if (integer === null) throw new BadRow(`its id ${quoted(cell)} is no integer, but the first id was`);
    return integer;
  };
}

function categoryOf(cell: string, column: string): string {
  if (cell === '') throw new BadRow(`it has no category: its cell in column ${quoted(column)} is empty`);
  return cell;
}

function priceOf(cell: string, column: string): number | Long | Decimal128 {
  if (cell === '') throw new BadRow(`it has no price: its cell in column ${quoted(column)} is empty`);
  const price = priceOfCell(cell);
  if (price === null) throw new BadRow(`its price is ${quoted(cell)}; expected a finite number`);
  if (price instanceof TooManyDigits)
    throw new BadRow(`in its column ${quoted(column)}: ${tooManyDigits(price).message}`);
  return price;
}
