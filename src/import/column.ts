import { UsageError } from '../terminal/arguments.ts';
import { quoted } from '../terminal/text.ts';
import type { Reading } from './arguments.ts';
import type { Kind } from './kinds.ts';
import { MAX_DEPTH, nameFault, pathOf, targetsOf, type Role, type Target } from './fields.ts';
import { BrokenSource } from './row.ts';

/** A column of a CSV file. */
export interface Column {
  readonly name: string;
  /** What the column becomes. Empty: another column takes its place. */
  readonly targets: readonly Target[];
  /** The kind that the user declared. null: its cells decide. */
  readonly declared: Kind | null;
  /** What the cells were so far. null: it is declared, or is no field with a kind of its own. */
  readonly guess: Guess | null;
  /** Present: the declared kind is that of the values in the store. */
  readonly isAsStored?: true;
}

/** The kinds that a column without a declared one may have: booleans and dates as the command writes them. */
export type Guessed = 'boolean' | 'date' | 'number';

/** What the cells of a column without a declared kind are. */
export interface Guess {
  readonly isId: boolean;
  /** The kinds that every cell so far may have. */
  fits: readonly Guessed[];
  /** The first kind that fits every cell, otherwise text. `empty`: no cell has a value. */
  kind: Guessed | 'string' | 'empty';
  /** The first cell that none of them fits. No further cell can change the kind. */
  because?: { readonly cell: string; readonly line: number };
}

/** How the cells of a column are read that becomes a field: as the kind that was declared, or as one of these. */
export type CellKind =
  | Kind
  /** A finite number in any notation. */
  | 'price'
  /** A number as JSON writes it, see cellValue. */
  | 'guessed number'
  /**
   * All ids of one file are of one kind, integers or texts. A URL would find only some ids of a mix (`8`, `007`), since
   * the text in a URL is read as the one type that a collection's ids have.
   */
  | 'integer';

/** How the cells of a column become a field. */
export function kindOf({ declared, guess }: Column, role: Role): CellKind {
  if (declared !== null) return declared;
  if (role === 'price') return 'price';
  if (role === 'category' || !guess || guess.kind === 'empty') return 'string';
  if (guess.kind !== 'number') return guess.kind;
  return role === 'id' ? 'integer' : 'guessed number';
}

/** The kinds that a field with rules may be declared as. */
const ALLOWED: Readonly<Record<Exclude<Target['role'], 'field'>, readonly Kind[]>> = {
  id: ['string', 'number', 'objectid', 'uuid'],
  category: ['string'],
  price: ['number', 'decimal'],
};

/**
 * The columns under a header row. Throws UsageError when a column that the command names is not there or cannot be what the
 * command says, and BrokenSource when the header's names cannot be field names.
 */
export function columnsUnder(
  header: readonly string[],
  { columns, types, isFlat = false, dates, booleans }: Reading,
): readonly Column[] {
  checkHeader(header);
  const idColumn = columns.id ?? ['_id', 'id'].find((name) => header.includes(name)) ?? null;
  if (columns.category !== null) requireColumn(header, columns.category, '--category');
  if (columns.price !== null) requireColumn(header, columns.price, '--price');
  if (idColumn !== null) requireColumn(header, idColumn, '--id');
  for (const name of types.keys()) requireColumn(header, name, '--type');
  const guessed: Guessed[] = [...(booleans ? ['boolean' as const] : []), ...(dates ? ['date' as const] : [])];
  const table = header.map((name): Column => {
    const targets = targetsOf(name, isFlat ? [name] : pathOf(name), idColumn, columns);
    const declared = types.get(name) ?? null;
    const isId = targets.some(({ role }) => role === 'id');
    const isGuessed = declared === null && (isId || targets.some(({ role }) => role === 'field'));
    const fits: readonly Guessed[] = isId ? ['number'] : [...guessed, 'number'];
    return { name, targets, declared, guess: isGuessed ? { isId, fits, kind: 'empty' } : null };
  });
  checkPaths(table);
  for (const column of table) checkDeclared(column);
  return table;
}

/** The names of columns, with those that the command gives them. Throws UsageError for a column that is not there. */
export function namedHeader(row: readonly string[], { names = new Map() }: Reading): readonly string[] {
  for (const number of names.keys())
    if (number > row.length)
      throw new UsageError(`--name ${number}=...: the header row has ${row.length} columns`);
  return row.map((name, index) => names.get(index + 1) ?? name);
}

/** Whether a table has none of the columns of items, and the command names none. */
export function isNoItems(header: readonly string[], { columns: { category, price } }: Reading): boolean {
  const isDefault = category === 'category' && price === 'price';
  return isDefault && header.length > 1 && !(header.includes(category) && header.includes(price));
}

function checkHeader(header: readonly string[]): void {
  if (/^sep=.?$/.test(header.join('')))
    throw new BrokenSource(
      `the first line (${quoted(header.join(''))}) is a hint for spreadsheets and no header row; take it out`,
    );
  const seen = new Set<string>();
  for (const [index, name] of header.entries()) {
    if (name === '')
      throw new BrokenSource(
        `column ${index + 1} has no name in the header row; --name ${index + 1}=NAME gives it one`,
      );
    const fault = seen.has(name) ? 'appears twice' : faultOfName(name);
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
  const own = table.flatMap(({ name, targets }) =>
    targets.filter(({ role }) => role === 'field').map(({ path }) => ({ name, path })),
  );
  const names = new Map(own.map(({ name, path }) => [path.join('.'), name]));
  for (const { name, path } of own) {
    for (let level = 1; level < path.length; level++) {
      const other = names.get(path.slice(0, level).join('.'));
      if (other !== undefined)
        throw new BrokenSource(
          `the header row has the columns ${quoted(other)} and ${quoted(name)}, but a field cannot be a value and a document; --no-paths keeps each name as it is`,
        );
    }
  }
}

function checkDeclared({ name, targets, declared }: Column): void {
  for (const { role } of targets) {
    if (role === 'field' || declared === null || ALLOWED[role].includes(declared)) continue;
    throw new UsageError(
      `--type ${name}=${declared}: the column is the item's ${role}, which can be ${ALLOWED[role].join(', ')}`,
    );
  }
}
