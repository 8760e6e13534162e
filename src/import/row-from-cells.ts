import { BSON_TYPE } from '../store/bson-types.ts';
import { quoted } from '../terminal/text.ts';
import type { ItemOfRecord } from './csv.ts';
import type { CsvScanner } from './csv-scanner.ts';
import { nameBytes, type DocumentWriter } from './document-writer.ts';
import { integerOfCell, numberOfCell, type Guess } from './guess.ts';
import { writeText, type Kind } from './kinds.ts';
import { priceOfCell, simpleNumber, withDecimalPoint } from './numbers.ts';
import { BadRow } from './row.ts';
import { RowWriter } from './row-writer.ts';
import type { Column } from './table.ts';
import type { Role } from './fields.ts';

const QUOTE = 0x22;

/** How one column becomes one field. */
interface Reader {
  readonly index: number;
  readonly role: Role;
  /**
   * What becomes of a cell without a text for it: `text` is the cell itself; `number` and `integer` are what simpleNumber
   * makes of it, when it is such a number (a whole one). null: `write` decides.
   */
  readonly form: 'text' | 'number' | 'integer' | null;
  /** Why a row needs a value. null: a cell without one becomes no field. */
  readonly whenEmpty: string | null;
  /** Writes the value of a cell that has one. Throws BadRow when it is none that the field may have. */
  readonly write: WriteCell;
}

type WriteCell = (writer: DocumentWriter, name: Uint8Array, cell: string) => void;

/** A field of an item: the one of a column, or a document. */
interface Field {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly reader: Reader | null;
  /** The fields of the document. */
  readonly inner: Field[];
}

/**
 * Returns the function that turns the rows of a table into items. `guesses` are the kinds of the columns that nobody
 * declared. A row with a cell of another kind is refused, so that a column never has values of two kinds. The fields of
 * a nested document are together, where the first of its columns is.
 */
export function itemsOfTable(
  table: readonly Column[],
  guesses: readonly (Guess | null)[],
  hasDecimalComma: boolean,
): ItemOfRecord {
  const fields: Field[] = [];
  for (const [index, column] of table.entries())
    for (const { role, path } of column.targets) {
      const reader = readerOf(column, role, index, guesses[index] ?? null, hasDecimalComma);
      let inner = fields;
      for (const name of path.slice(0, -1)) inner = documentIn(inner, name).inner;
      inner.push(fieldOf(path.at(-1) ?? '', reader));
    }
  const items = new TableItems(
    fields,
    fields.some(({ reader }) => reader?.role === 'price'),
  );
  return (record) => items.itemOf(record);
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
  readonly #writer: RowWriter;

  constructor(fields: readonly Field[], isItem: boolean) {
    this.#fields = fields;
    this.#writer = new RowWriter(isItem);
  }

  itemOf(record: CsvScanner): Uint8Array {
    this.#writer.begin();
    for (const field of this.#fields) this.#write(field, record);
    return this.#writer.endRow();
  }

  /** Writes a field. Returns whether the record has a value for it. */
  #write({ bytes, reader, inner }: Field, record: CsvScanner): boolean {
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

  #writeCell({ index, role, form, whenEmpty, write }: Reader, name: Uint8Array, record: CsvScanner): boolean {
    const [from = 0, to = 0] = [record.starts[index], record.ends[index]];
    // `""` is a text. In a column of numbers it is no value: some programs write every cell in quotes.
    if (record.isMissing(index) || (from === to && (form !== 'text' || role === 'id'))) {
      if (whenEmpty !== null) throw new BadRow(whenEmpty);
      return false;
    }
    const { offset } = this.#writer;
    const number = form === null || form === 'text' ? NaN : simpleNumber(record.bytes, from, to);
    if (form === 'text') this.#text(name, record.bytes, from, to, record.hasQuotes[index] ?? false);
    else if (form === 'integer' ? Number.isSafeInteger(number) : !Number.isNaN(number))
      this.#writer.number(name, number);
    else write(this.#writer, name, record.text(index));
    if (role !== 'field') this.#writer.add(role, offset);
    return true;
  }

  /** Writes a text. With `hasQuotes`, each quote in it is written twice. */
  #text(name: Uint8Array, source: Uint8Array, from: number, to: number, hasQuotes: boolean): void {
    const writer = this.#writer;
    writer.element(BSON_TYPE.string, name);
    const start = writer.open();
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

function readerOf(
  { name, declared }: Column,
  role: Role,
  index: number,
  guess: Guess | null,
  hasDecimalComma: boolean,
): Reader {
  const write =
    declared === null
      ? OWN_KINDS[role](name, guess, hasDecimalComma)
      : declaredCell(name, declared, hasDecimalComma);
  return {
    index,
    role,
    form: formOf(declared, role, guess, hasDecimalComma),
    whenEmpty: reasonWhenEmpty(role, name),
    write,
  };
}

function reasonWhenEmpty(role: Role, name: string): string | null {
  if (role === 'field') return null;
  if (role === 'id') return 'the id is empty';
  return `the row has no ${role}: the cell in column ${quoted(name)} is empty`;
}

/** See Reader. */
function formOf(
  declared: Kind | null,
  role: Role,
  guess: Guess | null,
  hasDecimalComma: boolean,
): Reader['form'] {
  if (role === 'category') return 'text';
  if (role === 'id' && declared === null) return guess?.kind === 'number' ? 'integer' : 'text';
  const kind = declared ?? (role === 'price' || guess?.kind === 'number' ? 'number' : 'string');
  if (kind === 'string') return 'text';
  return kind === 'number' && !hasDecimalComma ? 'number' : null;
}

function declaredCell(name: string, kind: Kind, hasDecimalComma: boolean): WriteCell {
  return (writer, bytes, cell) => inColumn(name, () => writeText(writer, bytes, cell, kind, hasDecimalComma));
}

/** Names the column in the reason of a bad row. */
function inColumn<Value>(name: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (error instanceof BadRow) throw new BadRow(`column ${quoted(name)}: ${error.message}`);
    throw error;
  }
}

/** How cells are read that nobody declared, by their role. Those that are texts are not read here. */
const OWN_KINDS: Readonly<
  Record<Role, (name: string, guess: Guess | null, hasDecimalComma: boolean) => WriteCell>
> = {
  /** A price in any notation. */
  price: (name, _, hasDecimalComma) => (writer, bytes, cell) => {
    const text = hasDecimalComma ? withDecimalPoint(cell) : cell;
    const price = text === null ? null : inColumn(name, () => priceOfCell(text));
    const hint =
      !hasDecimalComma && withDecimalPoint(cell) !== null ? ' (--decimal-comma reads this one)' : '';
    if (price === null) throw new BadRow(`the price is ${quoted(cell)}; expected a finite number${hint}`);
    writer.value(bytes, price);
  },
  /**
   * All ids of one file are of one kind, integers or texts. A URL would find only some ids of a mix (`8`, `007`), since
   * the text in a URL is read as the one type that a collection's ids have.
   */
  id: (name) => (writer, bytes, cell) =>
    writer.value(bytes, integerOfCell(cell) ?? refuse(name, cell, 'an integer', 'the ids')),
  category: (name, _, hasDecimalComma) => declaredCell(name, 'string', hasDecimalComma),
  /** The column's cells were numbers as far as they were read before. Another cell must not become text beside them. */
  field: (name, _, hasDecimalComma) => (writer, bytes, cell) =>
    writer.value(bytes, numberOfCell(cell, hasDecimalComma) ?? refuse(name, cell, 'a number', 'the cells')),
};

function refuse(name: string, cell: string, expected: string, others: string): never {
  throw new BadRow(
    `column ${quoted(name)}: ${quoted(cell)} is not ${expected}, but ${others} from which the import took the ` +
      `column's kind are; declare the kind, such as --type ${quoted(`${name}=string`)}`,
  );
}
