import { exactDate } from '../input/dates.ts';
import { counted, printable, quoted, shellWord } from '../terminal/text.ts';
import type { Column } from './column.ts';
import type { CsvRecord } from './csv.ts';
import { canRead, nameOfKind, simpleCell } from './kinds.ts';
import type { Notation } from './notation.ts';

/**
 * Returns the function that finds the kinds of columns from the records of a table, and returns whether a further one can
 * change a kind. It recognizes most numbers by their bytes.
 */
export function guessing(table: readonly Column[], notation: Notation): (record: CsvRecord) => boolean {
  let open = [...table.entries()].filter(([, { fits }]) => fits.length > 0);
  const see = (column: Column, cell: string, line: number): void => {
    if (cell === '') {
      column.kind ??= 'string'; // until another cell comes
      return;
    }
    column.fits = column.fits.filter((kind) => canRead(kind, cell, notation));
    column.kind = column.fits[0] ?? 'string';
    if (column.fits.length > 0) return;
    column.because = { cell, line };
    open = open.filter(([, one]) => one !== column); // the loop over the former list goes on
  };
  return (record) => {
    const { bytes, starts, ends, line } = record;
    for (const [index, column] of open) {
      if (record.isMissing(index)) continue;
      const [kind] = column.fits;
      const number = kind ? simpleCell(kind, notation, bytes, starts[index] ?? 0, ends[index] ?? 0) : NaN;
      if (Number.isNaN(number)) see(column, record.text(index), line);
      else column.kind = kind;
    }
    return open.length > 0;
  };
}

/**
 * One line for each column that says what it became, for the end of an import. A column of text that may have been
 * meant otherwise has the reason, and the option that changes it.
 */
export function described(table: readonly Column[], notation: Notation): readonly string[] {
  return table.map((column) => {
    const name = printable(column.name);
    if (column.path === null) return `  ${name}: not imported, another column takes its place`;
    const field = column.path.join('.');
    return `  ${name}: ${field === column.name ? '' : `${field}, `}${describedKind(column, notation)}`;
  });
}

function describedKind(column: Column, notation: Notation): string {
  const { kind, isAsStored, because } = column;
  if (kind === undefined) return 'no field, no cell with a value was read';
  if (isAsStored) return `${kind}, as in the rows that are stored`;
  return because ? `${kind} (${reasonOf(column, because, notation)})` : nameOfKind(kind);
}

/** Texts that programs write where there is no value. */
const NO_VALUE: readonly string[] = ['NA', 'N/A', 'n/a', 'NaN', 'nan', 'NULL', 'null', 'None', '-'];
/** Texts that are mostly meant as booleans, with the option that makes them. */
const BOOLEANS = ['true/false', 'yes/no', 'y/n', 't/f'];
/** Dates of spreadsheets, with a time or without one. */
const DATE = /^\d\d?([./-])\d\d?\1\d{4}( \d\d?:\d\d(:\d\d)?)?$/;

/** Why a column is text, by its first cell that is no number, and the option that reads it otherwise. */
function reasonOf(
  { name, isKey }: Column,
  { cell, line }: NonNullable<Column['because']>,
  { hasDecimalComma }: Notation,
): string {
  const found = `${quoted(cell)} on line ${counted(line)}`;
  if (isKey) return `${found} is not an integer`;
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
  const reads = (isWithComma: boolean) => canRead('plain number', cell, { hasDecimalComma: isWithComma });
  const isWithComma = !hasDecimalComma && reads(true) && !reads(false);
  return `${found} is not a number as JSON writes it${isWithComma ? '; --decimal-comma reads it' : ''}`;
}
