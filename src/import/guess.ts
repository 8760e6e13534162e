import { counted, printable, quoted } from '../terminal/text.ts';
import { exactDate } from '../input/dates.ts';
import type { CsvScanner } from './csv-scanner.ts';
import { cellValue, simpleNumber, withDecimalPoint } from './numbers.ts';
import type { Column } from './table.ts';
import { Long, type Decimal128 } from '../store/bson.ts';

/**
 * What a column without a declared kind is, by its cells: numbers when every cell is one, otherwise text. `empty`: no
 * cell has a value.
 */
export interface Guess {
  readonly kind: 'number' | 'string' | 'empty';
  /** The first cell that is not a number. */
  readonly because?: { readonly cell: string; readonly line: number };
}

/**
 * The number of a cell in a column that nobody declared: its text is a number as JSON writes it, and no digit is lost
 * (see cellValue). null for any other cell.
 */
export function numberOfCell(cell: string, hasDecimalComma: boolean): number | Long | Decimal128 | null {
  const text = hasDecimalComma ? pointed(cell) : cell;
  const value = text === null ? null : cellValue(text);
  return typeof value === 'string' ? null : value;
}

/** The integer of a cell in a column of ids. null for any other cell. */
export function integerOfCell(cell: string): number | Long | null {
  const value = cellValue(cell);
  return value instanceof Long || Number.isSafeInteger(value) ? (value as number | Long) : null;
}

/** Blanks around a number are not part of it as JSON writes it. */
function pointed(cell: string): string | null {
  return cell.trim() === cell ? withDecimalPoint(cell) : null;
}

/** Finds the kind of each column of a table from its rows. */
export class Guesses {
  readonly #columns: readonly (Watched | null)[];
  readonly #hasDecimalComma: boolean;
  #open: number[];

  constructor(table: readonly Column[], hasDecimalComma: boolean) {
    this.#hasDecimalComma = hasDecimalComma;
    this.#columns = table.map((column) => (isGuessed(column) ? new Watched(isId(column)) : null));
    this.#open = [...this.#columns.keys()].filter((index) => this.#columns[index] !== null);
  }

  /** Whether no further row can change a kind. */
  get areFinal(): boolean {
    return this.#open.length === 0;
  }

  /** Takes a row into account. Most numbers are recognized by their bytes. */
  add(record: CsvScanner): void {
    const { bytes, starts, ends, line } = record;
    for (const index of this.#open) {
      const column = this.#columns[index];
      const [from = 0, to = 0] = [starts[index], ends[index]];
      if (!column || record.isMissing(index)) continue;
      const number = this.#hasDecimalComma && !column.isId ? NaN : simpleNumber(bytes, from, to);
      if (column.isId ? Number.isSafeInteger(number) : !Number.isNaN(number)) column.kind = 'number';
      else this.#see(column, index, record.text(index), line);
    }
  }

  #see(column: Watched, index: number, cell: string, line: number): void {
    if (cell === '') {
      if (column.kind === 'empty') column.kind = 'string'; // until a number comes
      return;
    }
    const number = column.isId ? integerOfCell(cell) : numberOfCell(cell, this.#hasDecimalComma);
    column.kind = number === null ? 'string' : 'number';
    if (number !== null) return;
    column.because = { cell, line };
    this.#open = this.#open.filter((other) => other !== index); // the loop over the former list goes on
  }

  /** The kind of each column so far. null for a column that is declared, or is no field with a kind of its own. */
  take(): readonly (Guess | null)[] {
    return this.#columns.map((column) => {
      if (!column) return null;
      const { kind, because } = column;
      return because ? { kind, because } : { kind };
    });
  }
}

/** A column whose kind is being found. */
class Watched {
  readonly isId: boolean;
  kind: Guess['kind'] = 'empty';
  because: Guess['because'];

  constructor(isId: boolean) {
    this.isId = isId;
  }
}

function isGuessed({ targets, declared }: Column): boolean {
  return declared === null && targets.some(({ role }) => role === 'field' || role === 'id');
}

function isId({ targets }: Column): boolean {
  return targets.some(({ role }) => role === 'id');
}

/**
 * One line for each column that says what it became, for the end of an import. A column of text that may have been
 * meant otherwise has the reason, and the option that changes it.
 */
export function describeColumns(
  table: readonly Column[],
  guesses: readonly (Guess | null)[],
  hasDecimalComma: boolean,
): readonly string[] {
  return table.map((column, index) => {
    const { name, targets } = column;
    if (targets.length === 0) return `  ${printable(name)}: not imported, another column takes its place`;
    const become = targets.map((target) => {
      const kind = kindOf(column, target.role, guesses[index] ?? null, hasDecimalComma);
      return target.role === 'field' ? kind : `${target.path.join('.')}, ${kind}`;
    });
    return `  ${printable(name)}: ${become.join('; ')}`;
  });
}

function kindOf(
  { name, declared }: Column,
  role: Column['targets'][number]['role'],
  guess: Guess | null,
  hasDecimalComma: boolean,
): string {
  if (declared !== null) return declared;
  if (role === 'category') return 'string';
  if (role === 'price') return 'number';
  if (guess?.kind === 'empty') return 'no field, every cell is empty';
  const { kind = 'string', because } = guess ?? {};
  return because ? kind + reasonOf(name, because, hasDecimalComma) : kind;
}

/** Texts that programs write where there is no value. */
const NO_VALUE: ReadonlySet<string> = new Set([
  'NA',
  'N/A',
  'n/a',
  'NaN',
  'nan',
  'NULL',
  'null',
  'None',
  '-',
]);

/** Why a column is text, when its first text begins as a number does. */
function reasonOf(
  name: string,
  { cell, line }: NonNullable<Guess['because']>,
  hasDecimalComma: boolean,
): string {
  if (NO_VALUE.has(cell))
    return ` (${quoted(cell)} on line ${counted(line)}; --null ${cell} takes it as no value)`;
  if (!/^\s*[+-]?[.,]?\d/.test(cell)) return '';
  const where = ` (${quoted(cell)} on line ${counted(line)} is not a number as JSON writes it`;
  if (exactDate(cell, true) instanceof Date) {
    const kind = exactDate(cell, false) instanceof Date ? 'date' : 'date-utc';
    return ` (${quoted(cell)} on line ${counted(line)}; --type ${printable(name)}=${kind} makes dates)`;
  }
  const comma = !hasDecimalComma && numberOfCell(cell, true) !== null && numberOfCell(cell, false) === null;
  return comma ? `${where}; --decimal-comma reads it)` : `${where})`;
}
