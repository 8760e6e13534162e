import { KEY } from '../../store/bookmark.ts';
import type { Index, IndexKey } from '../../store/indexes.ts';

/** A query by its paths. `_id` is the key of a row. */
export interface PlanRequest {
  /** The paths that must equal a value, each once. */
  readonly equals: readonly string[];
  /** The order that the client asked for. */
  readonly sort?: { readonly path: string; readonly direction: 1 | -1 };
  /** The paths that have a lower or an upper bound, each once. */
  readonly ranges: readonly string[];
  /** The client chose no order: that of ids comes first, then that of an index. A path: a walk goes on in its order. */
  readonly free?: true | string;
}

/** How a query runs on an index: the entries under a prefix of equal values, ordered by one path and then by key. */
export interface Choice {
  readonly index: Index;
  /** The paths of the equalities in the order of the index. */
  readonly equals: readonly string[];
  /** The path that orders the rows. `_id`: their key alone. */
  readonly sort: string;
  readonly direction: 1 | -1;
}

/** Why no index answers a query. */
export interface Refusal {
  /** A sentence. */
  readonly reason: string;
  /** The fields of an index that would allow the query. Absent: no index can, for the reason given. */
  readonly remedy?: readonly string[];
}

/**
 * The index that answers a query without scan or sort: the equalities in any order, then the path of the order, then
 * `_id` in the same direction. A unique one also serves where the equalities name one row at most, or where it ends
 * with the order's path. With one range and no sort, its path orders the rows. `among`: all indexes, also refused ones.
 */
export function chooseIndex(asked: PlanRequest, among: readonly Index[]): Choice | Refusal {
  const { equals, ranges } = asked;
  const [range, second] = ranges;
  if (second !== undefined)
    return {
      reason: `Only one field can have a range: ${ranges.join(' and ')} have one each, and an index is ordered by one of them.`,
    };
  const wanted = asked.sort ?? { path: range ?? KEY, direction: 1 };
  if (range !== undefined && equals.includes(range))
    return { reason: `${range} has a value and a range. Give one of them.` };
  // All rows have the same value there, so the key alone orders them.
  const sort = equals.includes(wanted.path) ? KEY : wanted.path;
  const { direction } = wanted;
  if (range !== undefined && range !== sort)
    return { reason: `A range needs the order of its own field: sort=${range}_asc or sort=${range}_desc.` };

  const usable = among.filter(({ refused }) => refused === undefined);
  const ofIndex = asked.free === undefined ? undefined : orderedByIndex(equals, usable, asked.free);
  if (ofIndex && ofIndex.sort === asked.free) return ofIndex;
  const index =
    usable.find((one) => namesOneRow(one, equals)) ??
    usable.find((one) => isSuffixed(one, equals, sort)) ??
    usable.find((one) => isUniqueFor(one, equals, sort));
  if (index) return { index, equals: pathsOf(index).slice(0, equals.length), sort, direction };
  return ofIndex ?? refusalOf({ equals, sort }, among);
}

/** The first index that has these equalities and then orders the rows by itself, in its own direction. */
function orderedByIndex(
  equals: readonly string[],
  among: readonly Index[],
  by: true | string,
): Choice | undefined {
  for (const index of among) {
    const next = index.keys[equals.length];
    if (!next || next.path === KEY || (by !== true && by !== next.path)) continue;
    if (isSuffixed(index, equals, next.path) || isUniqueFor(index, equals, next.path))
      return {
        index,
        equals: pathsOf(index).slice(0, equals.length),
        sort: next.path,
        direction: next.sign,
      };
  }
  return undefined;
}

export function isRefusal(choice: Choice | Refusal): choice is Refusal {
  return 'reason' in choice;
}

function namesOneRow({ keys, isUnique }: Index, equals: readonly string[]): boolean {
  return isUnique && keys.every(({ path }) => equals.includes(path));
}

/** Whether an index is the equalities in any order, then `sort`, then `_id` in the direction of `sort`. */
function isSuffixed({ keys }: Index, equals: readonly string[], sort: string): boolean {
  if (!beginsWith(keys, equals)) return false;
  const [first, second] = keys.slice(equals.length);
  if (first?.path !== sort) return false;
  return sort === KEY || (second?.path === KEY && second.sign === first.sign);
}

/** Whether an index ends with `sort`, and is unique. */
function isUniqueFor({ keys, isUnique }: Index, equals: readonly string[], sort: string): boolean {
  const isWhole = keys.length === equals.length + 1 && beginsWith(keys, equals);
  return isUnique && isWhole && keys.at(-1)?.path === sort;
}

/** Whether the first fields of an index are these paths, in any order. */
function beginsWith(keys: readonly IndexKey[], paths: readonly string[]): boolean {
  const first = keys.slice(0, paths.length);
  return first.length === paths.length && first.every(({ path }) => paths.includes(path));
}

function pathsOf({ keys }: Index): readonly string[] {
  return keys.map(({ path }) => path);
}

/** Names the index that is missing, or the reason why none can help. */
function refusalOf(
  { equals, sort }: { readonly equals: readonly string[]; readonly sort: string },
  among: readonly Index[],
): Refusal {
  const remedy = [...equals, ...(sort === KEY ? [] : [sort]), KEY];
  const numbered = remedy.find((path) => path.split('.').some((name) => /^\d+$/.test(name)));
  if (numbered !== undefined)
    return {
      reason: `${numbered} has a number in its path, which may be a place in an array. No index over it is used.`,
    };
  const odd = remedy.find((path) => path.split('.').some((name) => name === '' || name.startsWith('$')));
  if (odd !== undefined) return { reason: `${odd} is not a path that an index can have.` };
  const refused = among.find((index) => index.refused !== undefined && isSame(pathsOf(index), remedy));
  if (refused)
    return { reason: `The index ${refused.name} has these fields, but it is not used: ${refused.refused}.` };
  const path = remedy.find((one) => arraysAt(one, among));
  const unusable = path === undefined ? undefined : arraysAt(path, among);
  if (unusable)
    return {
      reason: `No index over ${path} can answer a query: some row has, or had, an array there, as the index ${unusable.name} shows. Take the arrays out, then drop that index and create it again.`,
    };
  return { reason: 'No index answers this query.', remedy };
}

/** An index that has met an array at a path, or on the way to it. */
function arraysAt(path: string, among: readonly Index[]): Index | undefined {
  return among.find(({ arrays = [] }) => arrays.some((one) => `${path}.`.startsWith(`${one}.`)));
}

function isSame(paths: readonly string[], others: readonly string[]): boolean {
  return paths.length === others.length && paths.every((path) => others.includes(path));
}
