import { UsageError } from '../terminal/arguments.ts';
import { counted, countOf, printable, quoted, shellWord } from '../terminal/text.ts';
import type { Reading } from './arguments.ts';
import { isCommonCell } from './common-types.ts';
import type { CsvRecord } from './csv-scanner.ts';
import { canRead, nameOfKind, simpleCell, type CellKind, type Kind } from './kinds.ts';
import type { Notation } from './notation.ts';
import { optionsThatRead, whyText } from './number-notation.ts';
import { whyNoInteger } from './numbers.ts';
import { fieldNames, MAX_DEPTH, nameFault, pathOf, type Path } from './fields.ts';
import { BrokenSource } from './row.ts';

/** The kinds that the values of a field have, or are declared to have. Empty: rows have no values there so far. */
export type KindsAt = (path: string) => Promise<ReadonlySet<Kind>>;

/** A cell, and the line of its row. */
interface CellPlace {
  readonly cell: string;
  readonly line: number;
}

export interface Column {
  readonly name: string;
  /** The field that it becomes. null: another column takes its place. */
  readonly path: Path | null;
  readonly isKey: boolean;
  /** The kind of its cells: the declared one, or the one that they all had so far. undefined: none has a value. */
  kind: CellKind | undefined;
  /** The kinds that all cells so far may have. Empty: no further cell can change the kind. */
  fits: readonly CellKind[];
  /** The first cell that none of them fits: the column is text. */
  because?: CellPlace;
  /** Present: it is declared as numbers. The cells that are none, as far as they were counted. */
  readonly misfits?: { rows: number; first?: CellPlace };
  /** Present: the kind is that of the values in the store. */
  readonly isAsStored?: true;
}

const NUMBERS: readonly CellKind[] = ['number', 'decimal'];
/** The most cells of a column that are counted as no numbers. */
const MOST_MISFITS = 1_000;

/** Throws UsageError when a column that the command names is not there, and BrokenSource when a name cannot be one of a field. */
export function columnsUnder(
  header: readonly string[],
  { columns, types, isFlat = false, dates, booleans }: Reading,
): readonly Column[] {
  checkHeader(header);
  const { category, price } = columns;
  const key = columns.id ?? ['_id', 'id'].find((name) => header.includes(name)) ?? null;
  for (const [name, option] of [
    [category, '--category'] as const,
    [price, '--price'] as const,
    [key, '--id'] as const,
  ])
    if (name !== null) requireColumn(header, name, option);
  for (const name of types.keys()) requireColumn(header, name, '--type');
  const fieldOf = fieldNames(columns, key);
  const guessed: CellKind[] = ['plain number'];
  if (dates) guessed.unshift('date');
  if (booleans) guessed.unshift('word');
  const table = header.map((name): Column => {
    const path = fieldOf(name, isFlat ? [name] : pathOf(name));
    const isKey = path?.[0] === '_id';
    const ofItems = name === category ? 'string' : name === price ? 'number' : undefined;
    const kind = types.get(name) ?? ofItems;
    const isGuessed = kind === undefined && path !== null;
    const isOfNumbers = kind !== undefined && NUMBERS.includes(kind) && types.has(name) && path !== null;
    const fits = !isGuessed ? [] : isKey ? (['integer'] as const) : guessed;
    return { name, path, isKey, kind, fits, ...(isOfNumbers && { misfits: { rows: 0 } }) };
  });
  checkPaths(table);
  return table;
}

/** The names of columns, with those that the command gives them. Throws UsageError for a column that is not there. */
export function namedHeader(row: readonly string[], { names = new Map() }: Reading): readonly string[] {
  for (const number of names.keys())
    if (number > row.length)
      throw new UsageError(`--name ${number}=...: the header row has ${row.length} columns`);
  return row.map((name, index) => names.get(index + 1) ?? name);
}

function checkHeader(header: readonly string[]): void {
  const seen = new Set<string>();
  for (const [index, name] of header.entries()) {
    if (name === '')
      throw new BrokenSource(
        `column ${index + 1} has no name in the header row; --name ${index + 1}=NAME gives it one`,
      );
    const fault = seen.has(name)
      ? `appears twice; --name ${index + 1}=NAME gives the later one another`
      : faultOfName(name);
    if (fault !== null) throw new BrokenSource(`the column name ${quoted(name)} in the header row ${fault}`);
    seen.add(name);
  }
}

function faultOfName(name: string): string | null {
  const path = pathOf(name);
  if (path.length >= MAX_DEPTH) return `is nested deeper than ${MAX_DEPTH} levels`;
  return path.map(nameFault).find((fault) => fault !== null) ?? null;
}

function requireColumn(header: readonly string[], name: string, option: string): void {
  if (header.includes(name)) return;
  const known = header.map((column) => quoted(column)).join(', ');
  throw new UsageError(
    `the file has no column ${quoted(name)}; name one with ${option}. The columns are: ${known}`,
  );
}

/** A field cannot be a value and a document with other columns at the same time. */
function checkPaths(table: readonly Column[]): void {
  const names = new Map(
    table.flatMap(({ name, path }) => (path === null ? [] : [[path.join('.'), name] as const])),
  );
  for (const { name, path } of table)
    for (let level = 1; level < (path?.length ?? 0); level++) {
      const other = names.get(path?.slice(0, level).join('.') ?? '');
      if (other !== undefined)
        throw new BrokenSource(
          `the header row has the columns ${quoted(other)} and ${quoted(name)}, but a field cannot be a value and a document; --no-paths keeps each name as it is`,
        );
    }
}

/**
 * The columns, of which those without a declared kind are read as the one that their fields have in the resource, so that
 * a later file does not change it. A cell of another kind makes its row bad.
 */
export function readAsStored(table: readonly Column[], kindsAt: KindsAt): Promise<readonly Column[]> {
  return Promise.all(
    table.map(async (column): Promise<Column> => {
      const { path, kind, fits, because } = column;
      const isGuessed = fits.length > 0 || because !== undefined;
      const isNested = path && (path.length > 1 || !path[0]?.includes('.')); // a name with a dot cannot be looked for
      if (!isGuessed || !isNested || kind === undefined) return column;
      const stored = await kindsAt(path.join('.'));
      const own = nameOfKind(kind);
      if (stored.size === 0 || stored.has(own)) return column;
      return { ...column, kind: kindAmong(stored, own), fits: [], isAsStored: true };
    }),
  );
}

/** The kind that a column of another kind is read as. Numbers are those that JSON writes, so 01234 is none. */
function kindAmong(stored: ReadonlySet<Kind>, own: Kind): CellKind {
  if (stored.has('decimal') && own === 'number') return 'decimal';
  const [kind = 'string'] = stored.has('string') ? [] : stored;
  return kind === 'number' ? 'plain number' : kind;
}

/** Returns what finds kinds by the records of a table, and returns whether a further one can change a kind. */
export function guessing(table: readonly Column[], notation: Notation): (record: CsvRecord) => boolean {
  let open = [...table.entries()].filter(([, { fits }]) => fits.length > 0);
  const declared = [...table.entries()].filter(([, { misfits }]) => misfits !== undefined);
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
    for (const [index, column] of declared) countMisfit(column, record, index, notation);
    for (const [index, column] of open) {
      if (record.isMissing(index)) continue;
      const [kind] = column.fits;
      const number = kind ? simpleCell(kind, notation, bytes, starts[index] ?? 0, ends[index] ?? 0) : NaN;
      if (Number.isNaN(number)) see(column, record.text(index), line);
      else column.kind = kind;
    }
    return open.length > 0 || declared.length > 0;
  };
}

function countMisfit({ kind, misfits }: Column, record: CsvRecord, index: number, notation: Notation): void {
  if (!kind || !misfits || misfits.rows >= MOST_MISFITS || record.isMissing(index)) return;
  const { bytes, starts, ends, line } = record;
  const from = starts[index] ?? 0;
  const to = ends[index] ?? 0;
  if (from === to || !Number.isNaN(simpleCell(kind, notation, bytes, from, to))) return;
  if (isCommonCell(kind, { bytes, from, to }, notation)) return;
  const cell = record.text(index);
  if (canRead(kind, cell, notation)) return;
  misfits.rows++;
  misfits.first ??= { cell, line };
}

/** Lines for the beginning of an import: which columns have cells that make their rows bad. */
export function warnings(table: readonly Column[], notation: Notation): readonly string[] {
  return table.flatMap((column) => {
    const { name, kind, misfits, because, isAsStored } = column;
    if (misfits?.first && kind) return [misfitLine(name, `declared as ${kind}`, misfits.first, misfits.rows)];
    if (!isAsStored || !because || !kind || canRead(kind, because.cell, notation)) return [];
    return [misfitLine(name, `${nameOfKind(kind)}, as in the rows that are stored`, because)];
  });
}

function misfitLine(name: string, is: string, { cell, line }: CellPlace, rows?: number): string {
  const count = rows === undefined ? 'cells' : countOf(rows, 'cell');
  const some = rows === MOST_MISFITS ? `${count} or more` : count;
  const options = [...optionsThatRead(cell), `--type ${shellWord(`${name}=string`)}`];
  return (
    `column ${quoted(name)} is ${is}, and ${some} cannot be read so, such as ${quoted(cell)} on line ${counted(line)}: ` +
    `their rows are left out. What reads it: ${options.join(', or ')}`
  );
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
  '--null, --thousands, --decimal-comma, --currency, --date-format, --booleans and --type read such cells otherwise: sluice import --help';

function describedKind({ kind, isKey, isAsStored, because }: Column): string {
  if (kind === undefined) return 'no field, no cell with a value was read';
  if (isAsStored) return `${nameOfKind(kind)}, as in the rows that are stored`;
  if (!because) return nameOfKind(kind);
  const { cell, line } = because;
  return `${kind} (${quoted(cell)} on line ${counted(line)} ${isKey ? whyNoInteger(cell) : whyText(cell)})`;
}
