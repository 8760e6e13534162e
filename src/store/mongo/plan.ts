import { KEY, keyPaths, type Bookmark } from '../bookmark.ts';
import { MaxKey, MinKey } from '../bson.ts';
import { compareNumbers } from '../number.ts';
import type { Index } from '../indexes.ts';
import { stretchesOf, type End, type Stretch } from '../number-range.ts';
import { bracketsBelow } from './descending-ids.ts';
import { indexRanges, type IndexedPlan } from './index-ranges.ts';
import { commandKey } from './key.ts';
import { compareIds } from './order.ts';
import type { When } from './reply.ts';
import type { IdRange, Plan } from '../store.ts';
import { asNumberRange } from '../value-range.ts';

/** The paths of an index, joined by NUL, which no path contains. Plans run on ascending indexes that end with `_id`. */
export type IndexPaths = string & { readonly __paths: true };

export function joinPaths(paths: readonly string[]): IndexPaths {
  return paths.join('\0') as IndexPaths;
}

export function splitPaths(index: IndexPaths): readonly string[] {
  return index.split('\0');
}

/**
 * An index that a plan names, with everything that plans conclude from it. No joined paths begin with NUL. When another
 * index gets its name, that is another one.
 */
export function namedIndex({ name, keys, isUnique }: Index): IndexPaths {
  return `\0${JSON.stringify([name, keys.map(({ path, sign }) => [path, sign]), isUnique])}` as IndexPaths;
}

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
  /** The stretch of prices that this range covers, when the plan has a price range. */
  readonly stretch?: Stretch;
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
 * The ranges that hold the remaining rows of a plan after a bookmark, in the order to read them. Empty when certainly
 * nothing is left. There is one range, with two exceptions: a range of several stretches (see number-range.ts),
 * and a clustered collection in descending order. A clustered `_id` takes no bounds in that order (error 6137402), so
 * it is walked type by type: see descending-ids.ts.
 */
export function rangesOf(plan: Plan, after: Bookmark | null, clustered: boolean): readonly Range[] {
  const index = indexOf(plan);
  if (isIndexed(plan)) {
    if (!isByKey(plan)) return indexRanges(plan, after, { index, ...whenOf(plan) });
    const { index: byKey, ...same } = plan;
    return rangesOf(same, after, clustered).map((range) => ({ ...range, index: namedIndex(byKey) }));
  }
  const sort = Object.fromEntries(pathsOf(plan).map((path) => [path, plan.direction]));
  const base = { index, sort, ...whenOf(plan) };
  if (index === BY_KEY && plan.direction === -1 && clustered && after) {
    const type = after[4] ?? 0; // a bookmark in id order is one element: 4 bytes of length, type, name
    return bracketsBelow(commandKey(after)._id, type).map((bracket) => ({ ...base, ...bracket }));
  }
  const key = after && commandKey(after);
  const at = key && { ...valuesOf(plan), ...key };
  const numbers = asNumberRange(plan.range);
  if (numbers) {
    const stretches = stretchesOf(numbers).map((stretch) => stretchRange(stretch, plan, base));
    return (plan.direction === 1 ? stretches : stretches.reverse()).flatMap((range) => {
      const side = at ? sideOfNumber(at[plan.sort], range.stretch, plan) : 'before';
      if (side === 'inside') return [behind(range, plan, at, after)];
      return side === 'before' ? [range] : [];
    });
  }
  if (!isAscending(plan.ids)) return [];
  const whole = { ...base, ...bounds(lowest(plan), highest(plan)) };
  const side = key ? sideOf(key, plan) : 'before';
  if (side === 'inside') return [behind(whole, plan, at, after)];
  return side === 'before' ? [whole] : [];
}

function isIndexed(plan: Plan): plan is IndexedPlan {
  return plan.index !== undefined;
}

/** Whether a plan walks the index of the key alone. That index differs where the collection is clustered. */
function isByKey({ index, range, equals = [] }: IndexedPlan): boolean {
  const [first, second] = index.keys;
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

/** The rest of a range, after the bookmark that lies in it. */
function behind<R extends Range>(range: R, plan: Plan, at: Values | null, after: Bookmark | null): R {
  if (!at || !after) return range;
  return plan.direction === 1 ? { bookmark: after, ...range, min: at } : { ...range, max: at };
}

/** The range of a stretch of numbers, within the plan's equalities. */
function stretchRange(
  stretch: Stretch,
  plan: Plan,
  base: Pick<Range, 'index' | 'sort'>,
): Range & { readonly stretch: Stretch } {
  const bound = ({ value }: End, _id: unknown): Values => ({ ...valuesOf(plan), [plan.sort]: value, _id });
  const { from, to, only } = stretch;
  return {
    ...base,
    min: bound(from, from.inclusive ? new MinKey() : new MaxKey()),
    max: bound(to, to.inclusive ? new MaxKey() : new MinKey()),
    ...(only && { filter: { [plan.sort]: typeFilter(only) } }),
    stretch,
  };
}

/** The query condition that tells doubles from other numbers. */
export function typeFilter(only: NonNullable<Stretch['only']>): Values {
  return only === 'doubles' ? { $type: 'double' } : { $not: { $type: 'double' } };
}

function bounds(min: Values | undefined, max: Values | undefined): Pick<Range, 'min' | 'max'> {
  return { ...(min && { min }), ...(max && { max }) };
}

function lowest(plan: Plan): Values | undefined {
  if (plan.ids?.from) return idBound(plan, plan.ids.from);
  if (!plan.equals?.length) return undefined;
  return { ...valuesOf(plan), ...Object.fromEntries(keyPaths(plan).map((path) => [path, new MinKey()])) };
}

/**
 * `max` is exclusive. The rows of the last equality end where the next possible value begins. For a string that is the
 * string followed by a NUL. Other values have no such next value here, so the bound is the last entry under the value:
 * a row whose `sort` and `_id` are both MaxKey is the only one beyond it.
 */
function highest(plan: Plan): Values | undefined {
  if (plan.ids?.to) return idBound(plan, plan.ids.to);
  const last = plan.equals?.at(-1);
  if (!last) return undefined;
  const isText = typeof last.value === 'string';
  const rest = keyPaths(plan).map((path) => [path, isText ? new MinKey() : new MaxKey()] as const);
  const next = typeof last.value === 'string' ? { [last.path]: `${last.value}\0` } : {};
  return { ...valuesOf(plan), ...next, ...Object.fromEntries(rest) };
}

/** The values of a plan's equalities, by path, in the order of the index. */
export function valuesOf({ equals = [] }: Plan): Values {
  return Object.fromEntries(equals.map(({ path, value }) => [path, value]));
}

/** A bound of an id range. Like `min` and `max`, an id range is inclusive below and exclusive above. */
function idBound(plan: Plan, bound: Bookmark): Values {
  return { ...valuesOf(plan), _id: commandKey(bound)._id };
}

/** Clients choose id ranges. One whose bounds are the wrong way round has no rows. */
function isAscending({ from, to }: IdRange = {}): boolean {
  return !from || !to || (compareIds(commandKey(from)._id, commandKey(to)._id) ?? 0) < 0;
}

type Side = 'before' | 'inside' | 'beyond';

/** Where a bookmark lies in the plan's direction: before its id range, inside it, or beyond it. */
function sideOf(key: ReturnType<typeof commandKey>, plan: Plan): Side {
  const { from, to } = plan.ids ?? {};
  if (to && (compareIds(key._id, commandKey(to)._id) ?? 0) >= 0) return 'beyond';
  if (from && (compareIds(key._id, commandKey(from)._id) ?? 0) < 0) return 'before';
  return 'inside';
}

/** Where a bookmark's number lies in the plan's direction: before a stretch, inside it, or beyond it. */
function sideOfNumber(number: unknown, { from, to }: Stretch, { direction }: Plan): Side {
  const low = compareNumbers(number, from.value);
  if (low < 0 || (low === 0 && !from.inclusive)) return direction === 1 ? 'before' : 'beyond';
  const high = compareNumbers(number, to.value);
  if (high > 0 || (high === 0 && !to.inclusive)) return direction === 1 ? 'beyond' : 'before';
  return 'inside';
}
