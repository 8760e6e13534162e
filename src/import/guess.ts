import { exactDate } from '../input/dates.ts';
import { counted, printable, quoted, shellWord } from '../terminal/text.ts';
import { kindOf, type Column, type Guess, type Guessed } from './column.ts';
import type { CsvRecord } from './csv.ts';
import type { Role } from './fields.ts';
import { booleanOf, dateOfCell, type Notation } from './notation.ts';
import { integerOfCell, numberOfCell, simpleNumber } from './numbers.ts';

/**
 * Returns the function that finds the kinds of columns from the records of a table, and returns whether a further one can
 * change a kind. It recognizes most numbers by their bytes.
 */
export function guessing(table: readonly Column[], notation: Notation): (record: CsvRecord) => boolean {
  const { hasDecimalComma } = notation;
  let open = table.flatMap(({ guess }, index) => (guess ? [{ guess, index }] : []));
  const see = (guess: Guess, cell: string, line: number): void => {
    if (cell === '') {
      if (guess.kind === 'empty') guess.kind = 'string'; // until another cell comes
      return;
    }
    guess.fits = guess.fits.filter((kind) => isOfKind(kind, cell, guess, notation));
    guess.kind = guess.fits[0] ?? 'string';
    if (guess.fits.length > 0) return;
    guess.because = { cell, line };
    open = open.filter((one) => one.guess !== guess); // the loop over the former list goes on
  };
  return (record) => {
    const { bytes, starts, ends, line } = record;
    for (const { guess, index } of open) {
      const [from = 0, to = 0] = [starts[index], ends[index]];
      if (record.isMissing(index)) continue;
      const isOther = guess.fits.length > 1 || (hasDecimalComma && !guess.isId);
      const number = isOther ? NaN : simpleNumber(bytes, from, to);
      if (guess.isId ? Number.isSafeInteger(number) : !Number.isNaN(number)) guess.kind = 'number';
      else see(guess, record.text(index), line);
    }
    return open.length > 0;
  };
}

function isOfKind(kind: Guessed, cell: string, { isId }: Guess, notation: Notation): boolean {
  if (kind === 'boolean') return booleanOf(cell, notation) !== undefined;
  if (kind === 'date') return dateOfCell(cell, true, notation) instanceof Date;
  return (isId ? integerOfCell(cell) : numberOfCell(cell, notation.hasDecimalComma)) !== null;
}

/**
 * One line for each column that says what it became, for the end of an import. A column of text that may have been
 * meant otherwise has the reason, and the option that changes it.
 */
export function described(table: readonly Column[], notation: Notation): readonly string[] {
  return table.map((column) => {
    const name = printable(column.name);
    if (column.targets.length === 0) return `  ${name}: not imported, another column takes its place`;
    const become = column.targets.map(({ role, path }) => {
      const kind = describedKind(column, role, notation);
      return role === 'field' ? kind : `${path.join('.')}, ${kind}`;
    });
    return `  ${name}: ${become.join('; ')}`;
  });
}

function describedKind(column: Column, role: Role, notation: Notation): string {
  const kind = kindOf(column, role);
  if (kind === 'price' || kind === 'integer' || kind === 'guessed number') return 'number';
  const { name, guess } = column;
  if (column.isAsStored) return `${kind}, as in the rows that are stored`;
  if (guess === null || role === 'category' || kind !== 'string') return kind;
  if (guess.kind === 'empty') return 'no field, no cell with a value was read';
  return guess.because ? `${kind} (${reasonOf(name, guess.because, guess.isId, notation)})` : kind;
}

/** Texts that programs write where there is no value. */
const NO_VALUE: readonly string[] = ['NA', 'N/A', 'n/a', 'NaN', 'nan', 'NULL', 'null', 'None', '-'];
/** Texts that are mostly meant as booleans, with the option that makes them. */
const BOOLEANS = ['true/false', 'yes/no', 'y/n', 't/f'];
/** Dates of spreadsheets, with a time or without one. */
const DATE = /^\d\d?([./-])\d\d?\1\d{4}( \d\d?:\d\d(:\d\d)?)?$/;

/** Why a column is text, by its first cell that is no number, and the option that reads it otherwise. */
function reasonOf(
  name: string,
  { cell, line }: NonNullable<Guess['because']>,
  isId: boolean,
  { hasDecimalComma }: Notation,
): string {
  const found = `${quoted(cell)} on line ${counted(line)}`;
  if (isId) return `${found} is not an integer`;
  if (NO_VALUE.includes(cell)) return `${found}; --null ${cell} takes it as no value`;
  if (exactDate(cell, true) instanceof Date) {
    const kind = exactDate(cell, false) instanceof Date ? 'date' : 'date-utc';
    return `${found}; --type ${shellWord(printable(`${name}=${kind}`))} makes dates`;
  }
  const [, mark, time, seconds] = DATE.exec(cell) ?? [];
  if (mark !== undefined) {
    const form = (day: string) => `'${day}${mark}%Y${time ? ' %H:%M' : ''}${seconds ? ':%S' : ''}'`;
    const other = mark === '/' ? ` or ${form('%m/%d')}` : '';
    return `${found}; --date-format ${form(`%d${mark}%m`)}${other} makes dates`;
  }
  const pair = BOOLEANS.find((words) => words.split('/').includes(cell.toLowerCase()));
  if (pair !== undefined) return `${found}; --booleans ${pair} makes booleans`;
  if (!/^\s*[+-]?[.,]?\d/.test(cell)) return `${found} is not a number`;
  const isWithComma =
    !hasDecimalComma && numberOfCell(cell, true) !== null && numberOfCell(cell, false) === null;
  return `${found} is not a number as JSON writes it${isWithComma ? '; --decimal-comma reads it' : ''}`;
}
