import { KEY, type Bookmark } from '../../bookmark.ts';
import { MaxKey, MinKey } from '../../values/bson.ts';
import type { Index, IndexKey } from '../../indexes.ts';
import type { Plan } from '../../store.ts';
import { compareValues } from '../../values/order.ts';
import type { ValueRange } from '../../plan.ts';
import { commandKey } from './bookmark-in-command.ts';
import { isOfKey, whenOf, type IndexedPlan, type Range } from '../plan.ts';
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
  const forward = isForward(plan);
  const way = { ...whenOf(plan), index, sort: sortOf(index, forward), isForward: forward };
  if (clustered && after && direction === -1 && isOfKey(index) && !range) {
    const type = after[4] ?? 0; // a bookmark in id order is one element: 4 bytes of length, type, name
    return bracketsBelow(commandKey(after)._id, type).map((_id) => ({ ...way, filter: { _id } }));
  }
  if (range && (shape === 'unique' || sort === KEY)) return byPredicate(plan, range, after, way);
  const { point, ...whole } = boundsOf(plan);
  const mayBeEmpty = range ?? plan.ids; // a comparison takes as long as the rest
  if (mayBeEmpty && whole.min && whole.max && compare(whole.min, whole.max, index.keys) >= 0) return [];
  const parts = partsOf(plan, after, { ...way, ...whole }, forward);
  const isPassed = point && after && compareValues(commandKey(after)[sort], point.value) * direction >= 0;
  const hasBounds = parts.every(({ min, max }) => min !== undefined || max !== undefined);
  if (!point || isPassed || !hasBounds) return parts;
  const end = { ...way, filter: { ...conditionsOf(plan.equals ?? []), [sort]: conditionOf(point.value) } };
  return forward ? [...parts, end] : [end, ...parts];
}

/** The row that the equalities name, by the unique index, or by the key alone in the server's fastest way to one. */
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

/** An end of what a plan reads: before the entries of a value of its field, or behind them. */
interface End {
  readonly value: unknown;
  readonly isBehind: boolean;
}

/** Both ends in ascending order. No row has the key MinKey or MaxKey: a layout refuses these. */
function endsOf({ range, ids: { from, to } = {} }: Plan): readonly [End, End] {
  if (range) {
    const { low, high = endOf(range.bracket) } = range;
    const first = { value: low ? low.value : lowestOf(range.bracket), isBehind: low?.isInclusive === false };
    return [first, { value: high.value, isBehind: high.isInclusive }];
  }
  return [
    { value: from ? commandKey(from)._id : new MinKey(), isBehind: false },
    { value: to ? commandKey(to)._id : new MaxKey(), isBehind: to === undefined },
  ];
}

interface Bounds {
  readonly min?: Values;
  readonly max?: Values;
  readonly filter?: Values;
  /** The row that `max` leaves out although it belongs to the plan. */
  readonly point?: End;
}

/**
 * The bounds of a plan in its index. The fields behind the one that is bounded make an end one before all entries of its
 * value, or behind them. Where there are none, a filter leaves out the row at `min`, and the one at `max` is a range of
 * its own. The whole index has no bounds. Behind a bookmark it has one, and mongod then leaves out the row at its end, too.
 */
function boundsOf(plan: IndexedPlan): Bounds {
  const { equals = [], index } = plan;
  const [own, ...rest] = index.keys.slice(equals.length);
  if (!own) return {};
  const [low, high] = endsOf(plan);
  const [near, far] = own.sign === 1 ? [low, high] : [turned(high), turned(low)];
  const [First, Last] = own.sign === 1 ? [MinKey, MaxKey] : [MaxKey, MinKey];
  // An end that a plan names is a bound, too, where all rows lie on one side of it: a part up to MinKey has none.
  const isOpenBelow = !near.isBehind && near.value instanceof First;
  const isOpenAbove = far.isBehind && far.value instanceof Last;
  const bound = ({ value, isBehind }: End): Values => ({
    ...valuesOf(plan),
    [own.path]: value,
    ...fill(rest, isBehind ? lastOf : firstOf),
  });
  const isBare = equals.length === 0;
  const isLast = rest.length === 0;
  return {
    ...(!(isBare && isOpenBelow) && { min: bound(near) }),
    ...(!(isBare && isOpenAbove) && { max: bound(far) }),
    ...(isLast && near.isBehind && { filter: { [own.path]: { $ne: near.value } } }),
    ...(isLast && far.isBehind && !(isOpenAbove && own.path === KEY) && { point: far }),
  };
}

function turned({ value, isBehind }: End): End {
  return { value, isBehind: !isBehind };
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

function compare(a: Values, b: Values, keys: readonly IndexKey[]): number {
  for (const { path, sign } of keys) {
    const order = a[path] === b[path] ? 0 : compareValues(a[path], b[path]);
    if (order !== 0) return order * sign;
  }
  return 0;
}
