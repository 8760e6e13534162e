import type { Bookmark } from '../bookmark.ts';
import { MaxKey, MinKey } from '../bson.ts';
import { bracketsBelow } from './brackets.ts';
import { commandKey } from './key.ts';
import { compareNumbers } from './number.ts';
import { compareIds } from './order.ts';
import type { When } from './reply.ts';
import type { IdRange, Plan } from '../store.ts';

/** The indexes that plans run on, by the fields of their key, all ascending. */
export const INDEX_KEYS = {
  id: ['_id'],
  price: ['price', '_id'],
  category: ['category', '_id'],
  categoryPrice: ['category', 'price', '_id'],
} as const;
export type IndexRole = keyof typeof INDEX_KEYS;

type Values = Readonly<Record<string, unknown>>;

/** Range: a stretch of one index that one find command reads from its beginning. */
export interface Range extends When {
  readonly index: IndexRole;
  readonly sort: Readonly<Record<string, 1 | -1>>;
  /** Inclusive, in full BSON order; absent: from the index's beginning. */
  readonly min?: Values;
  /** Exclusive; absent: to its end. */
  readonly max?: Values;
  readonly filter?: Values;
  /** The first row may be this bookmark's own. */
  readonly bookmark?: Bookmark;
  /** The lowest id this range can hold, when other ranges may follow below it. */
  readonly floor?: { readonly value: unknown };
}

/** The index a plan runs on. */
export function indexOf(plan: Plan): IndexRole {
  if (plan.order === 'price') return plan.category === undefined ? 'price' : 'categoryPrice';
  return plan.category === undefined ? 'id' : 'category';
}

/**
 * The ranges that hold what a plan still has to give after a bookmark, in the order they are to be read; none when that
 * is certainly nothing. It is one range but for a clustered collection read downwards, whose `_id` takes no bounds there
 * (error 6137402) and is walked type by type: see brackets.ts.
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
    const type = after[4] ?? 0; // a bookmark in id order has one element: a length of 4 bytes, its type, its name
    return bracketsBelow(commandKey(after)._id, type).map((bracket) => ({ ...base, ...bracket }));
  }
  if (!isAscending(plan.ids)) return [];
  const low = lowest(plan);
  const high = highest(plan);
  if (!after) return isEmpty(plan) ? [] : [{ ...base, ...bounds(low, high) }];
  const key = commandKey(after);
  const place = isEmpty(plan) ? 'beyond' : placeOf(key, plan);
  if (place === 'beyond') return [];
  if (place === 'before') return [{ ...base, ...bounds(low, high) }];
  const at = { ...(plan.category !== undefined && { category: plan.category }), ...key };
  return plan.direction === 1
    ? [{ ...base, ...bounds(at, high), bookmark: after }]
    : [{ ...base, ...bounds(low, at) }];
}

function bounds(min: Values | undefined, max: Values | undefined): Pick<Range, 'min' | 'max'> {
  return { ...(min && { min }), ...(max && { max }) };
}

/** A range open on one side ends at an infinity: null, missing and NaN prices lie below -Infinity, strings above. */
function lowest(plan: Plan): Values | undefined {
  if (plan.ids?.from) return idBound(plan, plan.ids.from);
  const price = hasPriceRange(plan) ? (plan.minPrice ?? -Infinity) : new MinKey();
  if (plan.category === undefined) return hasPriceRange(plan) ? { price, _id: new MinKey() } : undefined;
  return { category: plan.category, ...(plan.order === 'price' && { price }), _id: new MinKey() };
}

/** `max` is exclusive: a category ends where the next possible string would begin, which is itself and a NUL. */
function highest(plan: Plan): Values | undefined {
  if (plan.ids?.to) return idBound(plan, plan.ids.to);
  const { category } = plan;
  if (hasPriceRange(plan)) {
    const price = plan.maxPrice ?? Infinity;
    return { ...(category !== undefined && { category }), price, _id: new MaxKey() };
  }
  if (category === undefined) return undefined;
  return {
    category: `${category}\0`,
    ...(plan.order === 'price' && { price: new MinKey() }),
    _id: new MinKey(),
  };
}

function hasPriceRange(plan: Plan): boolean {
  return plan.order === 'price' && (plan.minPrice !== undefined || plan.maxPrice !== undefined);
}

/** min >= max is error 51175 to the server, and no rows to us. */
function isEmpty({ minPrice = -Infinity, maxPrice = Infinity }: Plan): boolean {
  return minPrice > maxPrice;
}

/** A bound of an id range, which is inclusive below and exclusive above, as `min` and `max` are. */
function idBound({ category }: Plan, bound: Bookmark): Values {
  return { ...(category !== undefined && { category }), _id: commandKey(bound)._id };
}

/** A range of ids comes from clients: it may be upside down, and then has no rows. */
function isAscending({ from, to }: IdRange = {}): boolean {
  return !from || !to || (compareIds(commandKey(from)._id, commandKey(to)._id) ?? 0) < 0;
}

type Place = 'before' | 'inside' | 'beyond';

/** Where a bookmark lies, as the plan runs: before its range of ids or prices, in it, or beyond it. */
function placeOf(key: ReturnType<typeof commandKey>, plan: Plan): Place {
  const { from, to } = plan.ids ?? {};
  if (to && (compareIds(key._id, commandKey(to)._id) ?? 0) >= 0) return 'beyond';
  if (from && (compareIds(key._id, commandKey(from)._id) ?? 0) < 0) return 'before';
  return placeOfPrice(key.price, plan);
}

function placeOfPrice(price: unknown, plan: Plan): Place {
  if (!hasPriceRange(plan)) return 'inside';
  const { minPrice = -Infinity, maxPrice = Infinity, direction } = plan;
  if (compareNumbers(price, minPrice) < 0) return direction === 1 ? 'before' : 'beyond';
  if (compareNumbers(price, maxPrice) > 0) return direction === 1 ? 'beyond' : 'before';
  return 'inside';
}
