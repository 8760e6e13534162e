import { ObjectId } from '../store/bson.ts';
import type { Cell } from './csv-parser.ts';
import type { CsvScanner } from './direct/csv-scanner.ts';
import { CsvItems } from './direct/csv-items.ts';
import { quoted } from '../terminal/text.ts';
import { integerOfCell, numberOfCell, type Guess } from './guess.ts';
import { encodeItem, encodeRow } from './item.ts';
import { valueOfText, type Kind } from './kinds.ts';
import { priceOfCell, TooManyDigits, withDecimalPoint } from './numbers.ts';
import { putAt, type Fields, type Path } from './paths.ts';
import { BadRow } from './row.ts';
import type { Column, Target } from './table.ts';
import { tooManyDigits } from './values.ts';

/** Makes the item of one CSV row, as BSON. Throws BadRow when the row cannot become an item. */
export type ItemOfCells = (cells: readonly Cell[]) => Uint8Array;

/** Makes the items of CSV rows. */
export interface ItemOfRow {
  readonly general: ItemOfCells;
  /** The same item from the bytes of the row, several times faster. null: the general way must make it. */
  readonly direct: ((record: CsvScanner) => Uint8Array | null) | null;
}

/** How one column becomes one field. */
export interface Reader {
  readonly index: number;
  readonly path: Path;
  readonly role: Target['role'];
  /**
   * What `read` makes of a cell: `text` is the cell itself; `number` and `integer` are what simpleNumber makes of it, when
   * it is such a number (a whole one). Absent: `read` decides.
   */
  readonly form: 'text' | 'number' | 'integer' | null;
  /** Throws BadRow when the row needs a value. Absent: a cell without a value becomes no field. */
  readonly whenEmpty?: () => never;
  /** The value of a cell that has one. Throws BadRow when it is none that the field may have. */
  readonly read: (cell: string) => unknown;
}

/**
 * Returns the functions that turn the rows of a table into items. `guesses` are the kinds of the columns that nobody
 * declared. A row with a cell of another kind is refused, so that a column never has values of two kinds.
 */
export function itemsOfTable(
  table: readonly Column[],
  guesses: readonly (Guess | null)[],
  hasDecimalComma: boolean,
): ItemOfRow {
  const readers = table.flatMap((column, index) =>
    column.targets.map((target) => readerOf(column, target, index, guesses[index] ?? null, hasDecimalComma)),
  );
  const records = CsvItems.of(readers);
  return { general: itemsOfReaders(readers), direct: records && ((record) => records.itemOf(record)) };
}

function itemsOfReaders(readers: readonly Reader[]): ItemOfCells {
  const hasId = readers.some(({ role }) => role === 'id');
  const encode = readers.some(({ role }) => role === 'price') ? encodeItem : encodeRow;
  return (cells) => {
    const fields: Fields = new Map();
    fields.set('_id', hasId ? undefined : new ObjectId()); // takes the first place
    for (const reader of readers) {
      const cell = cells[reader.index] ?? null;
      if (cell === null || (cell === '' && !takesEmptyText(reader))) reader.whenEmpty?.();
      else putAt(fields, reader.path, reader.read(cell));
    }
    return encode(fields);
  };
}

/** Whether `""` is a value of a column. In a column of numbers it is none: some programs write every cell in quotes. */
export function takesEmptyText({ form, role }: Reader): boolean {
  return form === 'text' && role !== 'id';
}

function readerOf(
  column: Column,
  { role, path }: Target,
  index: number,
  guess: Guess | null,
  hasDecimalComma: boolean,
): Reader {
  const { name } = column;
  const kind = column.declared;
  const declared = kind === null ? null : declaredReader(name, kind, hasDecimalComma);
  const place = { index, path, role, form: formOf(kind, role, guess, hasDecimalComma) };
  switch (role) {
    case 'id':
      return { ...place, whenEmpty: missing('the id is empty'), read: declared ?? idReader(name, guess) };
    case 'category': {
      const reason = `the row has no category: the cell in column ${quoted(name)} is empty`;
      return { ...place, whenEmpty: missing(reason), read: (cell) => cell };
    }
    case 'price': {
      const reason = `the row has no price: the cell in column ${quoted(name)} is empty`;
      const read = declared ?? priceReader(name, hasDecimalComma);
      return { ...place, whenEmpty: missing(reason), read };
    }
    case 'field':
      return { ...place, read: declared ?? guessedReader(name, guess, hasDecimalComma) };
  }
}

/** See Reader. */
function formOf(
  declared: Kind | null,
  role: Target['role'],
  guess: Guess | null,
  hasDecimalComma: boolean,
): Reader['form'] {
  if (role === 'category') return 'text';
  if (role === 'id' && declared === null) return guess?.kind === 'number' ? 'integer' : 'text';
  const kind = declared ?? (role === 'price' || guess?.kind === 'number' ? 'number' : 'string');
  if (kind === 'string') return 'text';
  return kind === 'number' && !hasDecimalComma ? 'number' : null;
}

function missing(reason: string): () => never {
  return () => {
    throw new BadRow(reason);
  };
}

function declaredReader(name: string, kind: Kind, hasDecimalComma: boolean): Reader['read'] {
  if (kind === 'string') return (cell) => cell;
  return (cell) => {
    try {
      return valueOfText(cell, kind, hasDecimalComma);
    } catch (error) {
      if (error instanceof BadRow) throw new BadRow(`column ${quoted(name)}: ${error.message}`);
      throw error;
    }
  };
}

/** Reads a price in any notation. */
function priceReader(name: string, hasDecimalComma: boolean): Reader['read'] {
  return (cell) => {
    const text = hasDecimalComma ? withDecimalPoint(cell) : cell;
    const price = text === null ? null : priceOfCell(text);
    if (price instanceof TooManyDigits)
      throw new BadRow(`column ${quoted(name)}: ${tooManyDigits(cell).message}`);
    if (price !== null) return price;
    const hint =
      !hasDecimalComma && withDecimalPoint(cell) !== null ? ' (--decimal-comma reads this one)' : '';
    throw new BadRow(`the price is ${quoted(cell)}; expected a finite number${hint}`);
  };
}

/** The column's cells were numbers as far as they were read before. Another cell must not become text beside them. */
function guessedReader(name: string, guess: Guess | null, hasDecimalComma: boolean): Reader['read'] {
  if (guess?.kind !== 'number') return (cell) => cell;
  return (cell) => numberOfCell(cell, hasDecimalComma) ?? refuse(name, cell, 'a number', 'the cells');
}

/**
 * All ids of one file are of one kind, integers or texts. A URL would find only some ids of a mix (`8`, `007`), since
 * the text in a URL is read as the one type that a collection's ids have.
 */
function idReader(name: string, guess: Guess | null): Reader['read'] {
  if (guess?.kind !== 'number') return (cell) => cell;
  return (cell) => integerOfCell(cell) ?? refuse(name, cell, 'an integer', 'the ids');
}

function refuse(name: string, cell: string, expected: string, others: string): never {
  throw new BadRow(
    `column ${quoted(name)}: ${quoted(cell)} is not ${expected}, but ${others} from which the import took the ` +
      `column's kind are; declare the kind, such as --type ${quoted(`${name}=string`)}`,
  );
}
