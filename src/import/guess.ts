import { exactDate } from '../input/dates.ts';
import { counted, printable, quoted } from '../terminal/text.ts';
import { integerOfCell, kindOf, numberOfCell } from './cells.ts';
import type { CsvRecord } from './csv.ts';
import { simpleNumber } from './numbers.ts';
import type { Column } from './table.ts';

/** What the cells of a column without a declared kind are. */
interface Guess {
  readonly isId: boolean;
  /** Numbers when every cell is one, otherwise text. `empty`: no cell has a value. */
  kind: 'number' | 'string' | 'empty';
  /** The first cell that is not a number. No further cell can change the kind. */
  because?: { readonly cell: string; readonly line: number };
}

/** Finds the kind of each column of a table from its rows. */
export class Guesses {
  readonly #table: readonly Column[];
  readonly #hasDecimalComma: boolean;
  /** By column. null: it is declared, or is no field with a kind of its own. */
  readonly #guesses: readonly (Guess | null)[];
  /** The columns whose kind may still change. */
  #open: readonly number[];

  constructor(table: readonly Column[], hasDecimalComma: boolean) {
    this.#table = table;
    this.#hasDecimalComma = hasDecimalComma;
    this.#guesses = table.map(({ targets, declared }): Guess | null => {
      const roles = targets.map(({ role }) => role);
      const isGuessed = declared === null && (roles.includes('field') || roles.includes('id'));
      return isGuessed ? { isId: roles.includes('id'), kind: 'empty' } : null;
    });
    this.#open = [...table.keys()].filter((index) => this.#guesses[index]);
  }

  /** Takes a row into account. Returns whether a further row can change a kind. Most numbers are recognized by their bytes. */
  add(record: CsvRecord): boolean {
    const { bytes, starts, ends, line } = record;
    for (const index of this.#open) {
      const guess = this.#guesses[index];
      const [from = 0, to = 0] = [starts[index], ends[index]];
      if (!guess || record.isMissing(index)) continue;
      const number = this.#hasDecimalComma && !guess.isId ? NaN : simpleNumber(bytes, from, to);
      if (guess.isId ? Number.isSafeInteger(number) : !Number.isNaN(number)) guess.kind = 'number';
      else this.#see(guess, record.text(index), line);
    }
    return this.#open.length > 0;
  }

  #see(guess: Guess, cell: string, line: number): void {
    if (cell === '') {
      if (guess.kind === 'empty') guess.kind = 'string'; // until a number comes
      return;
    }
    const number = guess.isId ? integerOfCell(cell) : numberOfCell(cell, this.#hasDecimalComma);
    guess.kind = number === null ? 'string' : 'number';
    if (number !== null) return;
    guess.because = { cell, line };
    this.#open = this.#open.filter((index) => !this.#guesses[index]?.because); // the loop over the former list goes on
  }

  /** Whether the cells of each column are numbers, so far. */
  get areNumbers(): readonly boolean[] {
    return this.#guesses.map((guess) => guess?.kind === 'number');
  }

  /**
   * One line for each column that says what it became, for the end of an import. A column of text that may have been
   * meant otherwise has the reason, and the option that changes it.
   */
  describe(): readonly string[] {
    return this.#table.map((column, index) => {
      const name = printable(column.name);
      if (column.targets.length === 0) return `  ${name}: not imported, another column takes its place`;
      const become = column.targets.map(({ role, path }) => {
        const kind = this.#describeKind(column, role, this.#guesses[index] ?? null);
        return role === 'field' ? kind : `${path.join('.')}, ${kind}`;
      });
      return `  ${name}: ${become.join('; ')}`;
    });
  }

  #describeKind(column: Column, role: Column['targets'][number]['role'], guess: Guess | null): string {
    const kind = kindOf(column, role, guess?.kind === 'number');
    if (kind === 'price' || kind === 'integer' || kind === 'guessed number') return 'number';
    if (column.declared !== null || role === 'category') return kind;
    if (guess?.kind === 'empty') return 'no field, every cell is empty';
    return guess?.because ? kind + reasonOf(column.name, guess.because, this.#hasDecimalComma) : kind;
  }
}

/** Texts that programs write where there is no value. */
const NO_VALUE: readonly string[] = ['NA', 'N/A', 'n/a', 'NaN', 'nan', 'NULL', 'null', 'None', '-'];

/** Why a column is text, when its first text begins as a number does. */
function reasonOf(
  name: string,
  { cell, line }: NonNullable<Guess['because']>,
  hasDecimalComma: boolean,
): string {
  const found = `${quoted(cell)} on line ${counted(line)}`;
  if (NO_VALUE.includes(cell)) return ` (${found}; --null ${cell} takes it as no value)`;
  if (!/^\s*[+-]?[.,]?\d/.test(cell)) return '';
  if (exactDate(cell, true) instanceof Date) {
    const kind = exactDate(cell, false) instanceof Date ? 'date' : 'date-utc';
    return ` (${found}; --type ${printable(name)}=${kind} makes dates)`;
  }
  const isWithComma =
    !hasDecimalComma && numberOfCell(cell, true) !== null && numberOfCell(cell, false) === null;
  return ` (${found} is not a number as JSON writes it${isWithComma ? '; --decimal-comma reads it' : ''})`;
}
