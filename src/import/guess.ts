import { exactDate } from '../input/dates.ts';
import { counted, printable, quoted } from '../terminal/text.ts';
import { kindOf, type Column, type Guess } from './column.ts';
import type { CsvRecord } from './csv.ts';
import type { Role } from './fields.ts';
import { integerOfCell, numberOfCell, simpleNumber } from './numbers.ts';

/**
 * Returns the function that finds the kinds of columns from the records of a table, and returns whether a further one can
 * change a kind. It recognizes most numbers by their bytes.
 */
export function guessing(table: readonly Column[], hasDecimalComma: boolean): (record: CsvRecord) => boolean {
  let open = table.flatMap(({ guess }, index) => (guess ? [{ guess, index }] : []));
  const see = (guess: Guess, cell: string, line: number): void => {
    if (cell === '') {
      if (guess.kind === 'empty') guess.kind = 'string'; // until a number comes
      return;
    }
    const number = guess.isId ? integerOfCell(cell) : numberOfCell(cell, hasDecimalComma);
    guess.kind = number === null ? 'string' : 'number';
    if (number !== null) return;
    guess.because = { cell, line };
    open = open.filter((one) => one.guess !== guess); // the loop over the former list goes on
  };
  return (record) => {
    const { bytes, starts, ends, line } = record;
    for (const { guess, index } of open) {
      const [from = 0, to = 0] = [starts[index], ends[index]];
      if (record.isMissing(index)) continue;
      const number = hasDecimalComma && !guess.isId ? NaN : simpleNumber(bytes, from, to);
      if (guess.isId ? Number.isSafeInteger(number) : !Number.isNaN(number)) guess.kind = 'number';
      else see(guess, record.text(index), line);
    }
    return open.length > 0;
  };
}

/**
 * One line for each column that says what it became, for the end of an import. A column of text that may have been
 * meant otherwise has the reason, and the option that changes it.
 */
export function described(table: readonly Column[], hasDecimalComma: boolean): readonly string[] {
  return table.map((column) => {
    const name = printable(column.name);
    if (column.targets.length === 0) return `  ${name}: not imported, another column takes its place`;
    const become = column.targets.map(({ role, path }) => {
      const kind = describedKind(column, role, hasDecimalComma);
      return role === 'field' ? kind : `${path.join('.')}, ${kind}`;
    });
    return `  ${name}: ${become.join('; ')}`;
  });
}

function describedKind(column: Column, role: Role, hasDecimalComma: boolean): string {
  const kind = kindOf(column, role);
  if (kind === 'price' || kind === 'integer' || kind === 'guessed number') return 'number';
  const { name, guess } = column;
  if (guess === null || role === 'category') return kind;
  if (guess.kind === 'empty') return 'no field, every cell is empty';
  return guess.because ? kind + reasonOf(name, guess.because, hasDecimalComma) : kind;
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
