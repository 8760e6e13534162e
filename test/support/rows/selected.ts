import type { SelectionPaths } from '../../../src/rows/selection.ts';

/** A row as its JSON shows it, without repeated names. Its first member is the key. */
export type Row = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isExtended(value);
const isExtended = (value: object) => Object.keys(value)[0]?.startsWith('$') === true;
const isNested = (value: unknown) => Array.isArray(value) || isObject(value);
const joined = (parent: string, name: string) => (parent === '' ? name : `${parent}.${name}`);

/**
 * What a selection leaves of a row, by its definition: every member has a path, the names down to it joined by dots,
 * whatever dots are in the names. Elements of arrays have the path of the array.
 */
export function selected(row: Row, { fields, ...policy }: SelectionPaths): Row {
  const [key, ...others] = Object.entries(row);
  if (!key) throw new TypeError('a row has a key');
  const allowed = allowedBy(policy, Object.fromEntries(others));
  return Object.fromEntries([key, ...Object.entries(fields ? kept(allowed, '', fields) : allowed)]);
}

/** The JSON texts of the cells of a row. See Transcoder.table. */
export function cellsOf(
  row: Row,
  columns: readonly string[],
  { fields, ...policy }: SelectionPaths,
): (string | undefined)[] {
  const [key, ...others] = Object.entries(row);
  const own = allowedBy(policy, Object.fromEntries(others));
  return columns.map((column) => {
    const ofKey = fields ? /^_?id(?=\.|$)/ : /^_?id$/;
    const stored = columns.includes('_id') ? column : column.replace(ofKey, '_id');
    const shown = { _id: key?.[1], ...own };
    const value = fields ? onPath(shown, '', stored) : (shown as Row)[stored];
    return value === undefined ? undefined : JSON.stringify(value);
  });
}

function allowedBy({ hide, show }: SelectionPaths, row: Row): Row {
  return (show ? kept(row, '', show) : without(row, '', hide ?? [])) as Row;
}

/** A path below another one of the list adds nothing to it. */
const uncovered = (paths: readonly string[]) =>
  paths.filter((path) => !paths.some((other) => path.startsWith(`${other}.`)));

function kept(value: unknown, at: string, given: readonly string[]): Row | unknown[] {
  const paths = uncovered(given);
  if (Array.isArray(value)) return value.filter(isNested).map((element) => kept(element, at, paths));
  const members = Object.entries(value as Row).flatMap(([name, member]): [string, unknown][] => {
    const path = joined(at, name);
    if (paths.includes(path)) return [[name, member]];
    const isParent = isNested(member) && paths.some((other) => other.startsWith(`${path}.`));
    return isParent ? [[name, kept(member, path, paths)]] : [];
  });
  return Object.fromEntries(members);
}

function without(value: unknown, at: string, paths: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((element) => without(element, at, paths));
  if (!isObject(value)) return value;
  const members = Object.entries(value)
    .map(([name, member]) => [name, joined(at, name), member] as const)
    .filter(([, path]) => !paths.some((other) => path === other || path.startsWith(`${other}.`)));
  return Object.fromEntries(members.map(([name, path, member]) => [name, without(member, path, paths)]));
}

function onPath(value: Row, at: string, wanted: string): unknown {
  for (const [name, member] of Object.entries(value)) {
    const path = joined(at, name);
    if (path === wanted) return member;
    if (!wanted.startsWith(`${path}.`)) continue;
    if (Array.isArray(member)) return kept(member, path, [wanted]);
    const found = isObject(member) ? onPath(member, path, wanted) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
