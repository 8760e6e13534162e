import { counted, printable, quoted } from '../terminal/text.ts';
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

/** Lines for the end of an import: what each column became, and what made it text. */
export function described(table: readonly Column[]): readonly string[] {
  const lines = table.map((column) => {
    const name = printable(column.name);
    if (column.path === null) return `  ${name}: not imported, another column takes its place`;
    const field = column.path.join('.');
    return `  ${name}: ${field === column.name ? '' : `${field}, `}${describedKind(column)}`;
  });
  const hasText = table.some(({ because, isAsStored }) => because && !isAsStored);
  return ['columns:', ...lines, ...(hasText ? [OTHERWISE] : [])];
}

const OTHERWISE =
  '--null, --decimal-comma, --date-format, --booleans and --type read such cells otherwise: sluice import --help';

function describedKind({ kind, isKey, isAsStored, because }: Column): string {
  if (kind === undefined) return 'no field, no cell with a value was read';
  if (isAsStored) return `${nameOfKind(kind)}, as in the rows that are stored`;
  if (!because) return nameOfKind(kind);
  const number = isKey ? 'an integer' : 'a number as JSON writes it';
  return `${kind} (${quoted(because.cell)} on line ${counted(because.line)} is not ${number})`;
}
