import { KEY, type Bookmark } from '../bookmark.ts';
import { MaxKey, MinKey } from '../bson.ts';
import type { Index, IndexKey } from '../indexes.ts';
import type { Plan } from '../store.ts';
import { compareValues } from '../order.ts';
import type { ValueRange } from '../plan.ts';
import { commandKey } from './bookmark-in-command.ts';
import { isOfKey, whenOf, type IndexedPlan, type Range } from './plan.ts';
import { conditionOf, conditionsOf, rangeCondition, withoutArrays } from './predicates.ts';
import { bracketsBelow, endOf, lowestOf } from './type-brackets.ts';

type Values = Readonly<Record<string, unknown>>;

/**
 * How an index orders the rows of a plan. `suffixed`: rows of equal `sort` by their key. `unique`: under the equalities
 * no two rows have equal `sort`. `single`: the equalities name at most one row. Throws TypeError when it does not order
 * them: the planner chooses no such index.
 */
function shapeOf({ index, equals = [], sort }: IndexedPlan): 'suffixed' | 'unique' | 'single' {
  const { keys, isUnique } = index;
  if (isUnique && keys.every(({ path }) => equals.some((one) => one.path === path))) return 'single';
  const [first, second] = keys.slice(equals.length);
  if (equals.every(({ path }, n) => path === keys[n]?.path) && first?.path === sort) {
    if (sort === KEY || (second?.path === KEY && second.sign === first.sign)) return 'suffixed';
    if (isUnique && !second) return 'unique';
  }
  throw new TypeError(`the index ${index.name} does not order the rows of this plan`);
}

/** Whether a plan names at most one row by a unique index. */
export function isSingle(plan: IndexedPlan): boolean {
  return shapeOf(plan) === 'single';
}

/** Whether the plan walks its index from the first entry to the last. */
function isForward({ index, sort, direction }: IndexedPlan): boolean {
  return index.keys.find(({ path }) => path === sort)?.sign === direction;
}

/**
 * The ranges that hold the remaining rows of a plan after a bookmark, in the order to read them. Empty when nothing is
 * left. Most plans have one range between two bounds, `min` inclusive and `max` exclusive, which name every field of the
 * index. A bound that needs the other kind of end is completed by the fields behind it. Where there are none, the row at
 * that end is a range of its own, found by its value. A clustered `_id` takes no bounds in descending order (error
 * 6137402), so it is walked type by type: see bracketsBelow.
 */
export function rangesOf(plan: IndexedPlan, after: Bookmark | null, clustered: boolean): readonly Range[] {
  const { index, sort, range, direction } = plan;
  const shape = shapeOf(plan);
  if (shape === 'single') return [singleRange(plan, after)];
  const base = { index, ...whenOf(plan) };
  if (clustered && after && direction === -1 && isOfKey(index) && !range) {
    const type = after[4] ?? 0; // a bookmark in id order is one element: 4 bytes of length, type, name
    const brackets = bracketsBelow(commandKey(after)._id, type);
    return brackets.map((bracket) => ({ ...base, sort: { [KEY]: -1 }, ...bracket }));
  }
  const forward = isForward(plan);
  const way = { ...base, sort: sortOf(index, forward), isForward: forward };
  if (range && (shape === 'unique' || sort === KEY)) return byPredicate(plan, range, after, way);
  const whole = range ? valueBounds(plan, range) : plan.ids ? idBounds(plan) : wholeBounds(plan);
  const mayBeEmpty = range ?? plan.ids; // a comparison takes as long as the rest
  if (mayBeEmpty && whole.min && whole.max && compare(whole.min, whole.max, index.keys) >= 0) return [];
  const parts = partsOf(plan, after, { ...way, ...whole }, forward);
  const end = endPoint(plan, shape, parts.at(forward ? -1 : 0) ?? null, after, forward);
  if (!end) return parts;
  const point = { ...way, filter: end };
  return forward ? [...parts, point] : [point, ...parts];
}

/**
 * The row that the equalities of a plan name, if it meets all conditions. The server finds it by the unique index, or,
 * where nothing but the key is given, in its fastest way to a key.
 */
function singleRange(plan: IndexedPlan, after: Bookmark | null): Range {
  const { index, equals = [], range, sort } = plan;
  const place = { ...whenOf(plan), sort: {}, ...(after && { bookmark: after, isLoose: true }) };
  if (isOfKey(index) && equals.length === 1 && !range) return { ...place, filter: conditionsOf(equals) };
  const conditions = [
    ...equals.flatMap(({ path, value }) => withoutArrays(path, conditionOf(value))),
    ...(range ? withoutArrays(sort, rangeCondition(range)) : []),
  ];
  return { ...place, index, filter: { $and: conditions } };
}

/** The order of an index, or its reverse, as a find states it. */
export function sortOf({ keys }: Index, forward: boolean): Range['sort'] {
  return Object.fromEntries(keys.map(({ path, sign }) => [path, forward ? sign : (-sign as typeof sign)]));
}

/** The part of a range behind the bookmark. Empty when the bookmark is beyond it. */
function partsOf(plan: IndexedPlan, after: Bookmark | null, range: Range, forward: boolean): Range[] {
  if (!after) return [range];
  const { keys } = plan.index;
  const given = { ...valuesOf(plan), ...commandKey(after) };
  const place: Values = Object.fromEntries(
    keys.map(({ path, sign }) => [path, Object.hasOwn(given, path) ? given[path] : firstOf(sign)]),
  );
  const toMin = compare(place, range.min ?? fill(keys, firstOf), keys);
  const toMax = compare(place, range.max ?? fill(keys, lastOf), keys);
  if (forward && toMax >= 0) return [];
  if (forward) return toMin < 0 ? [range] : [{ ...range, min: place, bookmark: after, isLoose: true }];
  if (toMin <= 0) return [];
  return range.max && toMax >= 0 ? [range] : [{ ...range, max: place }];
}

/**
 * The row that `max` leaves out although it belongs to the plan, where no field follows that could complete the bound:
 * the row with the last value of a unique index, and the row with the first id of a range that is walked backwards.
 */
function endPoint(
  plan: IndexedPlan,
  shape: 'suffixed' | 'unique',
  part: Range | null,
  after: Bookmark | null,
  forward: boolean,
): Values | null {
  const { sort, index, ids, equals = [], direction } = plan;
  const sign = index.keys[equals.length]?.sign ?? 1;
  const key = after && commandKey(after)[sort];
  const isIdEnd = ids?.from !== undefined && !forward;
  if (!isIdEnd && (shape !== 'unique' || (part && !part.min && !part.max))) return null;
  const value = isIdEnd ? commandKey(ids.from)._id : lastOf(sign);
  const isPassed = after !== null && (compareValues(key, value) * direction >= 0 || (!forward && !isIdEnd));
  return isPassed ? null : { ...conditionsOf(equals), [sort]: conditionOf(value) };
}

/** Between predicates the server finds the bounds itself, inclusive and exclusive, within one type bracket. */
function byPredicate(
  plan: IndexedPlan,
  range: ValueRange,
  after: Bookmark | null,
  way: Pick<Range, 'index' | 'sort' | 'isForward'>,
): readonly Range[] {
  const { sort, direction } = plan;
  const asked = after ? rangeBehind(range, commandKey(after)[sort], direction) : range;
  if (!asked) return [];
  return [{ ...way, filter: { ...conditionsOf(plan.equals ?? []), [sort]: rangeCondition(asked) } }];
}

/** The part of a range that lies behind a value in a direction. Null: none does. */
function rangeBehind(range: ValueRange, value: unknown, direction: 1 | -1): ValueRange | null {
  const { bracket, low, high } = range;
  const { value: end } = endOf(bracket);
  const isBelow = compareValues(value, low ? low.value : lowestOf(bracket)) < 0;
  const isAbove = high ? compareValues(value, high.value) > 0 : compareValues(value, end) >= 0;
  const place = { value, isInclusive: false };
  if (direction === 1) return isAbove ? null : isBelow ? range : { ...range, low: place };
  return isBelow ? null : isAbove ? range : { ...range, high: place };
}

interface Bounds {
  readonly min?: Values;
  readonly max?: Values;
  readonly filter?: Values;
}

/** Everything under the equalities. Without equalities: the whole index. */
function wholeBounds(plan: IndexedPlan): Bounds {
  const rest = plan.index.keys.slice(plan.equals?.length ?? 0);
  if (!plan.equals?.length) return {};
  const equals = valuesOf(plan);
  return { min: { ...equals, ...fill(rest, firstOf) }, max: { ...equals, ...fill(rest, lastOf) } };
}

/** A range of values of `sort`. At least the key follows it in the index. */
function valueBounds(plan: IndexedPlan, { bracket, low, high }: ValueRange): Bounds {
  const at = plan.equals?.length ?? 0;
  const [own, ...rest] = plan.index.keys.slice(at);
  const ends = [low ?? { value: lowestOf(bracket), isInclusive: true }, high ?? endOf(bracket)] as const;
  const [near, far] = own?.sign === -1 ? [ends[1], ends[0]] : ends;
  const equals = valuesOf(plan);
  return {
    min: { ...equals, [plan.sort]: near.value, ...fill(rest, near.isInclusive ? firstOf : lastOf) },
    max: { ...equals, [plan.sort]: far.value, ...fill(rest, far.isInclusive ? lastOf : firstOf) },
  };
}

/**
 * A range of ids, `from` inclusive and `to` exclusive. In an index of descending ids it is the other way round: the row
 * of `to` is left out by a filter, and the row of `from` is a range of its own.
 */
function idBounds(plan: IndexedPlan): Bounds {
  const { ids: { from, to } = {}, index } = plan;
  const at = plan.equals?.length ?? 0;
  const [own, ...rest] = index.keys.slice(at);
  const { min, max } = wholeBounds(plan);
  const bound = (id: Bookmark): Values => ({
    ...valuesOf(plan),
    [KEY]: commandKey(id)._id,
    ...fill(rest, firstOf),
  });
  const [near, far] = own?.sign === -1 ? [to, from] : [from, to];
  const [first, last] = [near ? bound(near) : min, far ? bound(far) : max];
  return {
    ...(first && { min: first }),
    ...(last && { max: last }),
    ...(own?.sign === -1 && to && { filter: { [KEY]: { $ne: commandKey(to)._id } } }),
  };
}

function valuesOf({ equals = [] }: Plan): Values {
  return Object.fromEntries(equals.map(({ path, value }) => [path, value]));
}

function fill(keys: readonly IndexKey[], side: (sign: 1 | -1) => unknown): Values {
  return Object.fromEntries(keys.map(({ path, sign }) => [path, side(sign)]));
}

/** The value that no entry of a field of this sign comes before. */
function firstOf(sign: 1 | -1): MinKey | MaxKey {
  return sign === 1 ? new MinKey() : new MaxKey();
}

function lastOf(sign: 1 | -1): MinKey | MaxKey {
  return sign === 1 ? new MaxKey() : new MinKey();
}

/** Compares two places in an index. */
function compare(a: Values, b: Values, keys: readonly IndexKey[]): number {
  for (const { path, sign } of keys) {
    const order = a[path] === b[path] ? 0 : compareValues(a[path], b[path]);
    if (order !== 0) return order * sign;
  }
  return 0;
}
