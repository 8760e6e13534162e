import { UsageError } from '../terminal/arguments.ts';
import { quoted } from '../terminal/text.ts';
import type { Kind, Types } from './kinds.ts';
import { MAX_DEPTH, nameFault, pathOf, targetsOf, type Columns, type Target } from './fields.ts';
import { BrokenSource } from './row.ts';

/** A column of a CSV file. */
export interface Column {
  readonly name: string;
  /** What the column becomes. Empty: another column takes its place. */
  readonly targets: readonly Target[];
  /** The kind that the user declared. null: its cells decide. */
  readonly declared: Kind | null;
}

/** The kinds that a field with rules may be declared as. */
const ALLOWED: Readonly<Record<Exclude<Target['role'], 'field'>, readonly Kind[]>> = {
  id: ['string', 'number', 'objectid', 'uuid'],
  category: ['string'],
  price: ['number', 'decimal'],
};

/**
 * The columns under a header. `indexed` are fields that they must give. Throws UsageError when a column that the command names is not there or cannot be what the
 * command says, and BrokenSource when the header's names cannot be field names.
 */
export function tableOf(
  header: readonly string[],
  columns: Columns & { readonly isFlat?: boolean },
  types: Types,
  indexed: readonly string[] = [],
): readonly Column[] {
  checkHeader(header);
  const idColumn = columns.id ?? ['_id', 'id'].find((name) => header.includes(name)) ?? null;
  if (columns.category !== null) requireColumn(header, columns.category, '--category');
  if (columns.price !== null) requireColumn(header, columns.price, '--price');
  if (idColumn !== null) requireColumn(header, idColumn, '--id');
  for (const name of types.keys()) requireColumn(header, name, '--type');
  const isFlat = columns.isFlat ?? false;
  const table = header.map((name): Column => ({
    name,
    targets: targetsOf(name, isFlat ? [name] : pathOf(name), idColumn, columns),
    declared: types.get(name) ?? null,
  }));
  checkPaths(table);
  for (const column of table) checkDeclared(column);
  for (const path of indexed) requireField(table, path);
  return table;
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

/** Throws UsageError unless some column becomes the field at a path, or a part of it, or a value that may have it. */
function requireField(table: readonly Column[], path: string): void {
  const names = table.flatMap(({ targets }) => targets.map((target) => target.path.join('.')));
  const holds = (one: string, other: string) => one === other || other.startsWith(`${one}.`);
  if (names.some((name) => holds(name, path) || holds(path, name))) return;
  const known = names.map((name) => quoted(name)).join(', ');
  throw new UsageError(`no column becomes the field ${quoted(path)} of --index. The fields are: ${known}`);
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
