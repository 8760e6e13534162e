import type { Bookmark } from '../bookmark.ts';
import { MaxKey, MinKey } from '../bson.ts';
import { compareNumbers } from '../number.ts';
import { hasPriceRange, stretchesOf, type End, type Stretch } from '../price-range.ts';
import { bracketsBelow } from './descending-ids.ts';
import { commandKey } from './key.ts';
import { compareIds } from './order.ts';
import type { When } from './reply.ts';
import type { IdRange, Plan } from '../store.ts';

/** The fields of each index that plans run on. All are ascending. */
export const INDEX_KEYS = {
  id: ['_id'],
  price: ['price', '_id'],
  category: ['category', '_id'],
  categoryPrice: ['category', 'price', '_id'],
} as const;
export type IndexRole = keyof typeof INDEX_KEYS;

type Values = Readonly<Record<string, unknown>>;

/** Range: a stretch of one index that a single find command reads from its beginning. */
export interface Range extends When {
  readonly index: IndexRole;
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
}

/** The index a plan runs on. */
export function indexOf(plan: Plan): IndexRole {
  if (plan.order === 'price') return plan.category === undefined ? 'price' : 'categoryPrice';
  return plan.category === undefined ? 'id' : 'category';
}

/**
 * The ranges that hold the remaining rows of a plan after a bookmark, in the order to read them. Empty when certainly
 * nothing is left. There is one range, with two exceptions: a price range of several stretches (see price-range.ts),
 * and a clustered collection in descending order. A clustered `_id` takes no bounds in that order (error 6137402), so
 * it is walked type by type: see descending-ids.ts.
 */
export function rangesOf(plan: Plan, after: Bookmark | null, clustered: boolean): readonly Range[] {
  const index = indexOf(plan);
  const sort = Object.fromEntries(INDEX_KEYS[index].map((field) => [field, plan.direction]));
  const { at: time, since, identity } = plan;
  const when = {
    ...(time !== undefined && { at: time }),
    ...(since !== undefined && { since }),
    ...(identity !== undefined && { identity }),
  };
  const base = { index, sort, ...when };
  if (index === 'id' && plan.direction === -1 && clustered && after) {
    const type = after[4] ?? 0; // a bookmark in id order is one element: 4 bytes of length, type, name
    return bracketsBelow(commandKey(after)._id, type).map((bracket) => ({ ...base, ...bracket }));
  }
  const key = after && commandKey(after);
  const at = key && { ...(plan.category !== undefined && { category: plan.category }), ...key };
  if (plan.order === 'price' && hasPriceRange(plan)) {
    const stretches = stretchesOf(plan).map((stretch) => stretchRange(stretch, plan, base));
    return (plan.direction === 1 ? stretches : stretches.reverse()).flatMap((range) => {
      const side = at ? sideOfPrice(at.price, range.stretch, plan) : 'before';
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

/** The rest of a range, after the bookmark that lies in it. */
function behind<R extends Range>(range: R, plan: Plan, at: Values | null, after: Bookmark | null): R {
  if (!at || !after) return range;
  return plan.direction === 1 ? { ...range, min: at, bookmark: after } : { ...range, max: at };
}

/** The range of a stretch of prices, within the plan's category. */
function stretchRange(
  stretch: Stretch,
  { category }: Plan,
  base: Pick<Range, 'index' | 'sort'>,
): Range & { readonly stretch: Stretch } {
  const bound = ({ value }: End, _id: unknown): Values => ({
    ...(category !== undefined && { category }),
    price: value,
    _id,
  });
  const { from, to, only } = stretch;
  return {
    ...base,
    min: bound(from, from.inclusive ? new MinKey() : new MaxKey()),
    max: bound(to, to.inclusive ? new MaxKey() : new MinKey()),
    ...(only && { filter: { price: typeFilter(only) } }),
    stretch,
  };
}

/** The query condition that tells doubles from other prices. */
export function typeFilter(only: NonNullable<Stretch['only']>): Values {
  return only === 'doubles' ? { $type: 'double' } : { $not: { $type: 'double' } };
}

function bounds(min: Values | undefined, max: Values | undefined): Pick<Range, 'min' | 'max'> {
  return { ...(min && { min }), ...(max && { max }) };
}

function lowest(plan: Plan): Values | undefined {
  if (plan.ids?.from) return idBound(plan, plan.ids.from);
  const { category } = plan;
  if (category === undefined) return undefined;
  return { category, ...(plan.order === 'price' && { price: new MinKey() }), _id: new MinKey() };
}

/** `max` is exclusive. A category ends where the next possible string begins: the category followed by a NUL. */
function highest(plan: Plan): Values | undefined {
  if (plan.ids?.to) return idBound(plan, plan.ids.to);
  const { category } = plan;
  if (category === undefined) return undefined;
  return {
    category: `${category}\0`,
    ...(plan.order === 'price' && { price: new MinKey() }),
    _id: new MinKey(),
  };
}

/** A bound of an id range. Like `min` and `max`, an id range is inclusive below and exclusive above. */
function idBound({ category }: Plan, bound: Bookmark): Values {
  return { ...(category !== undefined && { category }), _id: commandKey(bound)._id };
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

/** Where a bookmark's price lies in the plan's direction: before a stretch of prices, inside it, or beyond it. */
function sideOfPrice(price: unknown, { from, to }: Stretch, { direction }: Plan): Side {
  const low = compareNumbers(price, from.value);
  if (low < 0 || (low === 0 && !from.inclusive)) return direction === 1 ? 'before' : 'beyond';
  const high = compareNumbers(price, to.value);
  if (high > 0 || (high === 0 && !to.inclusive)) return direction === 1 ? 'beyond' : 'before';
  return 'inside';
}
