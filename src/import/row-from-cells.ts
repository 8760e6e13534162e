import { BSON_TYPE } from '../store/bson-types.ts';
import { quoted } from '../terminal/text.ts';
import type { CsvRecord, ItemOfRecord } from './csv.ts';
import { nameBytes, type DocumentWriter } from './document-writer.ts';
import type { Role } from './fields.ts';
import { writeKind } from './kinds.ts';
import type { Notation } from './notation.ts';
import { integerOfCell, numberOfCell, priceOfCell, simpleNumber, withDecimalPoint } from './numbers.ts';
import { BadRow } from './row.ts';
import { RowWriter } from './row-writer.ts';
import { kindOf, type CellKind, type Column } from './column.ts';

const QUOTE = 0x22;

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
 * Returns the function that turns the rows of a table into items, once the kinds of its columns are known. A row with a cell of another kind is refused, so that a column never has values of two kinds. The fields of a
 * nested document are together, where the first of its columns is.
 */
export function itemsOfTable(
  table: readonly Column[],
  notation: Notation,
  writer = writerOf(table),
): ItemOfRecord {
  const fields: Field[] = [];
  for (const [index, column] of table.entries())
    for (const { role, path } of column.targets) {
      const kind = kindOf(column, role);
      const reader = { column: column.name, index, role, kind, form: formOf(kind, notation) };
      let inner = fields;
      for (const name of path.slice(0, -1)) inner = documentIn(inner, name).inner;
      inner.push(fieldOf(path.at(-1) ?? '', reader));
    }
  return (record) => {
    writer.begin();
    for (const field of fields) writeField(writer, field, record, notation);
    return writer.endRow();
  };
}

/** The writer of the rows of a table, which are items if one of its columns is the price. */
export function writerOf(table: readonly Column[]): RowWriter {
  return new RowWriter(table.some(({ targets }) => targets.some(({ role }) => role === 'price')));
}

/** See Reader. */
function formOf(kind: CellKind, { hasDecimalComma }: Notation): Reader['form'] {
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

/** Writes a field. Returns whether the record has a value for it. */
function writeField(
  writer: RowWriter,
  { bytes, reader, inner }: Field,
  record: CsvRecord,
  notation: Notation,
): boolean {
  if (reader) return writeCell(writer, reader, bytes, record, notation);
  const { offset } = writer;
  writer.element(BSON_TYPE.document, bytes);
  const start = writer.open();
  let hasValue = false;
  for (const field of inner) hasValue = writeField(writer, field, record, notation) || hasValue;
  if (hasValue) writer.close(start);
  else writer.rewind(offset);
  return hasValue;
}

function writeCell(
  writer: RowWriter,
  reader: Reader,
  name: Uint8Array,
  record: CsvRecord,
  notation: Notation,
): boolean {
  const { column, index, role, form } = reader;
  const [from = 0, to = 0] = [record.starts[index], record.ends[index]];
  // `""` is a text. In a column of numbers it is no value: some programs write every cell in quotes.
  if (record.isMissing(index) || (from === to && (form !== 'text' || role === 'id'))) {
    if (role === 'field') return false;
    const reason = `the row has no ${role}: the cell in column ${quoted(column)} is empty`;
    throw new BadRow(role === 'id' ? 'the id is empty' : reason, true).in('column', column);
  }
  const { offset } = writer;
  const number = form === null || form === 'text' ? NaN : simpleNumber(record.bytes, from, to);
  if (form === 'text') writeText(writer, name, record, index);
  else if (form === 'integer' ? Number.isSafeInteger(number) : !Number.isNaN(number))
    writer.number(name, number);
  else writeOther(writer, name, record.text(index), reader, notation);
  if (role !== 'field') writer.add(role, offset);
  return true;
}

/** Writes a cell as a text. In one with quotes, each is written twice. */
function writeText(writer: RowWriter, name: Uint8Array, record: CsvRecord, index: number): void {
  const { bytes: source } = record;
  const hasQuotes = record.hasQuotes[index] ?? false;
  const [from = 0, to = 0] = [record.starts[index], record.ends[index]];
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

/** Writes the value of a cell whose kind its bytes alone do not show. Throws BadRow when it is none that the field may have. */
function writeOther(
  writer: DocumentWriter,
  name: Uint8Array,
  cell: string,
  { column, kind }: Pick<Reader, 'column' | 'kind'>,
  notation: Notation,
): void {
  try {
    if (kind === 'price') writer.value(name, priceOf(cell, notation));
    else if (kind === 'integer')
      writer.value(name, integerOfCell(cell) ?? refuse(column, cell, 'an integer', 'the ids'));
    else if (kind === 'guessed number') {
      const number = numberOfCell(cell, notation.hasDecimalComma);
      writer.value(name, number ?? refuse(column, cell, 'a number', 'the cells'));
    } else writeKind(writer, name, cell, kind, notation);
  } catch (error) {
    throw error instanceof BadRow ? error.in('column', column) : error;
  }
}

function priceOf(cell: string, { hasDecimalComma }: Notation): ReturnType<typeof priceOfCell> {
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
