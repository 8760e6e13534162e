import { isDeepStrictEqual } from 'node:util';
import { KEY, keyPaths, type Bookmark } from '../bookmark.ts';
import type { Index } from '../indexes.ts';
import type { Plan } from '../store.ts';
import type { Layout } from './collection/create-collection.ts';
import type { When } from './lane/lane.ts';

/** A plan that names its index. */
export type IndexedPlan = Plan & { readonly index: Index };

/** Whether an index is that of the key. In a clustered collection it may have any name. */
export function isOfKey({ keys: [first, second] }: Index): boolean {
  return first?.path === KEY && first.sign === 1 && !second;
}

/** Whether an index is over these paths, in this order. */
export function hasPaths({ keys }: Index, paths: readonly string[]): boolean {
  return keys.length === paths.length && keys.every(({ path }, n) => path === paths[n]);
}

/** What a find says to read by an index. */
export function hintOf(index: Index): string | Readonly<Record<string, 1>> {
  return isOfKey(index) ? { [KEY]: 1 } : index.name;
}

/** Whether a layout has an index, with everything that plans conclude from it, and plans may use it. */
export function hasIndex({ indexes }: Pick<Layout, 'indexes'>, index: Index): boolean {
  if (isOfKey(index)) return true; // every collection has it
  return indexes.some((one) => one === index || (one.name === index.name && isDeepStrictEqual(one, index)));
}

/** A plan with its index in a layout. Null: there is none that it may use. */
export function indexed(layout: Pick<Layout, 'indexes'>, plan: Plan): IndexedPlan | null {
  if (isIndexed(plan)) return hasIndex(layout, plan.index) ? plan : null;
  const paths = [...(plan.equals ?? []).map(({ path }) => path), ...keyPaths(plan)];
  const index = layout.indexes.find(
    (one) => one.refused === undefined && hasPaths(one, paths) && one.keys.every(({ sign }) => sign === 1),
  );
  return index ? { ...plan, index } : null;
}

function isIndexed(plan: Plan): plan is IndexedPlan {
  return plan.index !== undefined;
}

type Values = Readonly<Record<string, unknown>>;

/** Range: a stretch of one index that a single find command reads from its beginning. */
export interface Range extends When {
  /** Absent: the server finds the row by its key. */
  readonly index?: Index;
  readonly sort: Readonly<Record<string, 1 | -1>>;
  /** Inclusive, in full BSON order. Absent: from the beginning of the index. */
  readonly min?: Values;
  /** Exclusive. Absent: to the end of the index. */
  readonly max?: Values;
  readonly filter?: Values;
  /** The first row of the range may be the row of this bookmark. */
  readonly bookmark?: Bookmark;
  /** Whether the range is read in the order of its index. Absent: it is when `sort` is ascending. */
  readonly isForward?: boolean;
  /** The index may lack the key of rows: a first row that is not beyond the bookmark is left out, even another one. */
  readonly isLoose?: boolean;
}

/** The time and the collection that a plan's reads state. */
export function whenOf({ at, since, identity }: Plan): When {
  return {
    ...(at !== undefined && { at }),
    ...(since !== undefined && { since }),
    ...(identity !== undefined && { identity }),
  };
}
