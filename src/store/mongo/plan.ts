import { KEY, keyPaths, type Bookmark } from '../bookmark.ts';
import type { Index } from '../indexes.ts';
import { bracketsBelow } from './descending-ids.ts';
import { indexRanges, isIndexed } from './index-ranges.ts';
import { commandKey } from './bookmark-in-command.ts';
import type { When } from './reply.ts';
import type { Plan } from '../store.ts';

/** The paths of an index, joined by NUL, which no path contains. Plans run on ascending indexes that end with `_id`. */
export type IndexPaths = string & { readonly __paths: true };

export function joinPaths(paths: readonly string[]): IndexPaths {
  return paths.join('\0') as IndexPaths;
}

/**
 * An index that a plan names, with everything that plans conclude from it. No joined paths begin with NUL. When another
 * index gets its name, that is another one.
 */
export function namedIndex(index: Index): IndexPaths {
  if (index.name === '_id_') return BY_KEY; // MongoDB gives no other index this name
  const known = NAMED.get(index);
  if (known !== undefined) return known;
  const { name, keys, isUnique } = index;
  const shape = [name, keys.map(({ path, sign }) => [path, sign]), isUnique];
  const named = `\0${JSON.stringify(shape)}` as IndexPaths;
  NAMED.set(index, named);
  return named;
}

/** Those of the indexes that a look has listed, which every read by them names. */
const NAMED = new WeakMap<Index, IndexPaths>();

/** The index of the key. Every collection has it. */
export const BY_KEY = joinPaths([KEY]);

type Values = Readonly<Record<string, unknown>>;

/** Range: a stretch of one index that a single find command reads from its beginning. */
export interface Range extends When {
  readonly index: IndexPaths;
  readonly sort: Readonly<Record<string, 1 | -1>>;
  /** Inclusive, in full BSON order. Absent: from the beginning of the index. */
  readonly min?: Values;
  /** Exclusive. Absent: to the end of the index. */
  readonly max?: Values;
  readonly filter?: Values;
  /** The first row of the range may be the row of this bookmark. */
  readonly bookmark?: Bookmark;
  /** The lowest id that this range can hold, when further ranges may follow below it. */
  readonly floor?: { readonly value: unknown };
  /** Whether the range is read in the order of its index. Absent: it is when `sort` is ascending. */
  readonly isForward?: boolean;
  /**
   * The index may lack the key of rows, so the first row is left out when it is not beyond the bookmark, even if it is
   * another row.
   */
  readonly isLoose?: boolean;
}

/** The index a plan runs on. */
export function indexOf(plan: Plan): IndexPaths {
  if (plan.index) return namedIndex(plan.index);
  return joinPaths(pathsOf(plan));
}

/** The paths of the index that a plan without a named index runs on. */
function pathsOf(plan: Plan): readonly string[] {
  const paths = keyPaths(plan);
  return plan.equals ? [...plan.equals.map(({ path }) => path), ...paths] : paths;
}

/**
 * The ranges that hold the remaining rows of a plan after a bookmark, in the order to read them. Empty when nothing is
 * left. There is one range, with two exceptions: see index-ranges.ts, and a clustered collection in descending order. A
 * clustered `_id` takes no bounds in that order (error 6137402), so it is walked type by type: see descending-ids.ts.
 */
export function rangesOf(plan: Plan, after: Bookmark | null, clustered: boolean): readonly Range[] {
  const base = { index: indexOf(plan), ...whenOf(plan) };
  if (clustered && after && plan.direction === -1 && isByKey(plan)) {
    const type = after[4] ?? 0; // a bookmark in id order is one element: 4 bytes of length, type, name
    const brackets = bracketsBelow(commandKey(after)._id, type);
    return brackets.map((bracket) => ({ ...base, sort: { [KEY]: -1 }, ...bracket }));
  }
  return indexRanges(isIndexed(plan) ? plan : { ...plan, index: ascendingIndex(plan) }, after, base);
}

/** The index that a plan runs on when it names none. */
function ascendingIndex(plan: Plan): Index {
  const keys = pathsOf(plan).map((path) => ({ path, sign: 1 as const }));
  return { name: '', keys, isUnique: false };
}

/** Whether a plan walks the index of the key alone. That index differs where the collection is clustered. */
function isByKey({ index, sort, range, equals = [] }: Plan): boolean {
  const [first, second] = index?.keys ?? [{ path: sort, sign: 1 }];
  return !range && equals.length === 0 && first?.path === KEY && first.sign === 1 && !second;
}

/** The time and the collection that a plan's reads state. */
export function whenOf({ at, since, identity }: Plan): When {
  return {
    ...(at !== undefined && { at }),
    ...(since !== undefined && { since }),
    ...(identity !== undefined && { identity }),
  };
}
