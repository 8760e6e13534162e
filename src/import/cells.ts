import { BSON_TYPE } from '../store/bson-types.ts';
import { Long, type Decimal128 } from '../store/bson.ts';
import { quoted } from '../terminal/text.ts';
import type { CsvRecord, ItemOfRecord } from './csv.ts';
import { nameBytes, type DocumentWriter } from './document-writer.ts';
import type { Role } from './fields.ts';
import { writeText, type Kind } from './kinds.ts';
import { cellValue, priceOfCell, simpleNumber, withDecimalPoint } from './numbers.ts';
import { BadRow } from './row.ts';
import { RowWriter } from './row-writer.ts';
import type { Column } from './table.ts';

const QUOTE = 0x22;

/** How the cells of a column are read that becomes a field: as the kind that was declared, or as one of these. */
export type CellKind =
  | Kind
  /** A finite number in any notation. */
  | 'price'
  /** A number as JSON writes it, see cellValue. */
  | 'guessed number'
  /**
   * All ids of one file are of one kind, integers or texts. A URL would find only some ids of a mix (`8`, `007`), since
   * the text in a URL is read as the one type that a collection's ids have.
   */
  | 'integer';

/** How a column without a declared kind is read as a field. `isNumber`: whether its cells are numbers. */
export function kindOf({ declared }: Column, role: Role, isNumber: boolean): CellKind {
  if (declared !== null) return declared;
  if (role === 'price') return 'price';
  if (role === 'category' || !isNumber) return 'string';
  return role === 'id' ? 'integer' : 'guessed number';
}

/** The number of a cell in a column that nobody declared: see cellValue. null for any other cell. */
export function numberOfCell(cell: string, hasDecimalComma: boolean): number | Long | Decimal128 | null {
  // Blanks around a number are not part of it as JSON writes it.
  const text = !hasDecimalComma ? cell : cell.trim() === cell ? withDecimalPoint(cell) : null;
  const value = text === null ? null : cellValue(text);
  return typeof value === 'string' ? null : value;
}

/** The integer of a cell in a column of ids. null for any other cell. */
export function integerOfCell(cell: string): number | Long | null {
  const value = cellValue(cell);
  return value instanceof Long || (typeof value === 'number' && Number.isSafeInteger(value)) ? value : null;
}

/** A field of an item: the one of a column, or a document. */
interface Field {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly reader: Reader | null;
  /** The fields of the document. */
  readonly inner: Field[];
}

/** How one column becomes one field. */
interface Reader {
  /** The name and the place of the column. */
  readonly column: string;
  readonly index: number;
  readonly role: Role;
  readonly kind: CellKind;
  /**
   * What becomes of a cell without a text for it: `text` is the cell itself; `number` and `integer` are what simpleNumber
   * makes of it, when it is such a number (a whole one). null: writeCell decides.
   */
  readonly form: 'text' | 'number' | 'integer' | null;
}

/**
 * Returns the function that turns the rows of a table into items. `areNumbers` says of each column whether its cells are
 * numbers. A row with a cell of another kind is refused, so that a column never has values of two kinds. The fields of a
 * nested document are together, where the first of its columns is.
 */
export function itemsOfTable(
  table: readonly Column[],
  areNumbers: readonly boolean[],
  hasDecimalComma: boolean,
): ItemOfRecord {
  const fields: Field[] = [];
  for (const [index, column] of table.entries())
    for (const { role, path } of column.targets) {
      const kind = kindOf(column, role, areNumbers[index] ?? false);
      const reader = { column: column.name, index, role, kind, form: formOf(kind, hasDecimalComma) };
      let inner = fields;
      for (const name of path.slice(0, -1)) inner = documentIn(inner, name).inner;
      inner.push(fieldOf(path.at(-1) ?? '', reader));
    }
  const isItem = fields.some(({ reader }) => reader?.role === 'price');
  const items = new TableItems(fields, isItem, hasDecimalComma);
  return (record) => items.itemOf(record);
}

/** See Reader. */
function formOf(kind: CellKind, hasDecimalComma: boolean): Reader['form'] {
  if (kind === 'string') return 'text';
  if (kind === 'integer') return kind;
  return ['number', 'price', 'guessed number'].includes(kind) && !hasDecimalComma ? 'number' : null;
}

function fieldOf(name: string, reader: Reader | null): Field {
  return { name, bytes: nameBytes(name), reader, inner: [] };
}

function documentIn(fields: Field[], name: string): Field {
  const known = fields.find((field) => field.name === name);
  if (known) return known;
  const field = fieldOf(name, null);
  fields.push(field);
  return field;
}

class TableItems {
  readonly #fields: readonly Field[];
  readonly #hasDecimalComma: boolean;
  readonly #writer: RowWriter;

  constructor(fields: readonly Field[], isItem: boolean, hasDecimalComma: boolean) {
    this.#fields = fields;
    this.#hasDecimalComma = hasDecimalComma;
    this.#writer = new RowWriter(isItem);
  }

  itemOf(record: CsvRecord): Uint8Array {
    this.#writer.begin();
    for (const field of this.#fields) this.#write(field, record);
    return this.#writer.endRow();
  }

  /** Writes a field. Returns whether the record has a value for it. */
  #write({ bytes, reader, inner }: Field, record: CsvRecord): boolean {
    if (reader) return this.#writeCell(reader, bytes, record);
    const writer = this.#writer;
    const { offset } = writer;
    writer.element(BSON_TYPE.document, bytes);
    const start = writer.open();
    let hasValue = false;
    for (const field of inner) hasValue = this.#write(field, record) || hasValue;
    if (hasValue) writer.close(start);
    else writer.rewind(offset);
    return hasValue;
  }

  #writeCell(reader: Reader, name: Uint8Array, record: CsvRecord): boolean {
    const { column, index, role, form } = reader;
    const [from = 0, to = 0] = [record.starts[index], record.ends[index]];
    // `""` is a text. In a column of numbers it is no value: some programs write every cell in quotes.
    if (record.isMissing(index) || (from === to && (form !== 'text' || role === 'id'))) {
      if (role === 'field') return false;
      const reason = `the row has no ${role}: the cell in column ${quoted(column)} is empty`;
      throw new BadRow(role === 'id' ? 'the id is empty' : reason);
    }
    const { offset } = this.#writer;
    const number = form === null || form === 'text' ? NaN : simpleNumber(record.bytes, from, to);
    if (form === 'text') this.#text(name, record.bytes, from, to, record.hasQuotes[index] ?? false);
    else if (form === 'integer' ? Number.isSafeInteger(number) : !Number.isNaN(number))
      this.#writer.number(name, number);
    else writeCell(this.#writer, name, record.text(index), reader, this.#hasDecimalComma);
    if (role !== 'field') this.#writer.add(role, offset);
    return true;
  }

  /** Writes a text. With `hasQuotes`, each quote in it is written twice. */
  #text(name: Uint8Array, source: Uint8Array, from: number, to: number, hasQuotes: boolean): void {
    const writer = this.#writer;
    const start = writer.openText(name);
    writer.room(to - from);
    const { bytes } = writer;
    let { at } = writer;
    for (let n = from; n < to; n++) {
      const byte = source[n] ?? 0;
      bytes[at++] = byte;
      if (hasQuotes && byte === QUOTE) n++;
    }
    writer.at = at;
    writer.closeText(start);
  }
}

/** Writes the value of a cell that its bytes alone do not tell. Throws BadRow when it is none that the field may have. */
function writeCell(
  writer: DocumentWriter,
  name: Uint8Array,
  cell: string,
  { column, kind }: Pick<Reader, 'column' | 'kind'>,
  hasDecimalComma: boolean,
): void {
  try {
    if (kind === 'price') writer.value(name, priceOf(cell, hasDecimalComma));
    else if (kind === 'integer')
      writer.value(name, integerOfCell(cell) ?? refuse(column, cell, 'an integer', 'the ids'));
    else if (kind === 'guessed number') {
      const number = numberOfCell(cell, hasDecimalComma);
      writer.value(name, number ?? refuse(column, cell, 'a number', 'the cells'));
    } else writeText(writer, name, cell, kind, hasDecimalComma);
  } catch (error) {
    throw error instanceof BadRow ? error.in('column', column) : error;
  }
}

function priceOf(cell: string, hasDecimalComma: boolean): ReturnType<typeof priceOfCell> {
  const pointed = withDecimalPoint(cell);
  const text = hasDecimalComma ? pointed : cell;
  const price = text === null ? null : priceOfCell(text);
  if (price !== null) return price;
  const hint = !hasDecimalComma && pointed !== null ? ' (--decimal-comma reads this one)' : '';
  throw new BadRow(`the price is ${quoted(cell)}; expected a finite number${hint}`, true);
}

/** The column's cells were others as far as they were read before. */
function refuse(name: string, cell: string, expected: string, others: string): never {
  throw new BadRow(
    `${quoted(cell)} is not ${expected}, but ${others} from which the import took the column's kind are; declare the ` +
      `kind, such as --type ${quoted(`${name}=string`)}`,
  );
}
