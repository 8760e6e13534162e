import { KEY, keyPaths, type Bookmark } from '../bookmark.ts';
import type { Index } from '../indexes.ts';
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

export function indexOf(plan: Plan): IndexPaths {
  if (plan.index) return namedIndex(plan.index);
  return joinPaths(pathsOf(plan));
}

/** The paths of the index that a plan without a named index runs on. */
export function pathsOf(plan: Plan): readonly string[] {
  const paths = keyPaths(plan);
  return plan.equals ? [...plan.equals.map(({ path }) => path), ...paths] : paths;
}

/** The time and the collection that a plan's reads state. */
export function whenOf({ at, since, identity }: Plan): When {
  return {
    ...(at !== undefined && { at }),
    ...(since !== undefined && { since }),
    ...(identity !== undefined && { identity }),
  };
}
