import { AppError } from '../errors.ts';
import { documented, oneOf, parameter, paths, text, type Parameter } from '../input/parameter.ts';
import type { Query } from '../input/query.ts';
import type { PlanParameters } from '../pages/query.ts';
import { KEY } from '../store/bookmark.ts';
import { numberRange } from '../store/number-range.ts';
import type { Plan } from '../store/store.ts';
import { MAX_ID_BYTES } from '../streams/id.ts';
import { BOUND, isBound } from './price-number.ts';

/** id and category are at most this long, in bytes of UTF-8. */
export const MAX_KEY_BYTES = MAX_ID_BYTES;

export const MAX_FIELDS = 100;

export const SORTS = ['price_asc', 'price_desc', 'id_asc', 'id_desc'] as const;
export type Sort = (typeof SORTS)[number];

const category = documented(text('category', MAX_KEY_BYTES), 'Return only items of this category.', {
  example: 'Ideal',
});
const sort = documented(
  oneOf('sort', SORTS),
  'The order of the rows. Rows of equal price are ordered by id in the same direction.',
  {
    fallback: 'id_asc',
  },
);
const minPrice = documented(
  bound('min_price'),
  'The lowest price, inclusive, compared with the digits that rows show. Requires a price sort, and makes `price_asc` the default.',
);
const maxPrice = documented(
  bound('max_price'),
  'The highest price, inclusive. The rules of `min_price` apply.',
);
const fields = documented(
  paths('fields', MAX_FIELDS, MAX_KEY_BYTES),
  'Return only these fields, separated by commas. `a.b` is the member `b` of `a`, or of each element when `a` is an array. The key is always included.',
  { example: 'price,color' },
);

/** The parameters that choose and order items, each as the client gave it. */
export interface Wanted {
  readonly category?: string | undefined;
  readonly sort?: Sort | undefined;
  readonly min_price?: string | undefined;
  readonly max_price?: string | undefined;
}

/** A bound of prices, kept as its digits because a double would lose some of them. */
function bound(name: string): Parameter<string> {
  return parameter(name, BOUND, { type: 'number' }, (digits) => (isBound(digits) ? digits : undefined));
}

/**
 * The sort that applies. A price range needs a price sort, so `price_asc` is then the default. AppError
 * `conflicting-parameters` for a price range with a sort by id.
 */
export function sortOf({ sort: given, min_price: low, max_price: high }: Wanted): Sort {
  const ranged = low !== undefined || high !== undefined;
  const asked = given ?? (ranged ? 'price_asc' : 'id_asc');
  if (!ranged || asked.startsWith('price')) return asked;
  // A price range in id order would be a filtered scan of the whole collection, because no index serves it.
  throw new AppError(
    'conflicting-parameters',
    `min_price and max_price require a price sort; got sort=${asked}.`,
    { parameter: 'sort' },
  );
}

/** The order and filter asked for. AppError `conflicting-parameters` for a price range in id order. */
export function planOf(wanted: Wanted): Plan {
  const asked = sortOf(wanted);
  const { category: only, min_price: low, max_price: high } = wanted;
  return {
    sort: asked.startsWith('price') ? 'price' : KEY,
    direction: asked.endsWith('asc') ? 1 : -1,
    ...(only !== undefined && { equals: [{ path: 'category', value: only }] }),
    ...((low !== undefined || high !== undefined) && { range: numberRange(low, high) }),
  };
}

/** Reads the parameters that choose and order items. */
export function readWanted(query: Query): Wanted {
  return {
    category: category.read(query),
    sort: sort.read(query),
    min_price: minPrice.read(query),
    max_price: maxPrice.read(query),
  };
}

/** Every item has these, so they are the first columns of a table. */
export const FIRST_COLUMNS = ['id', 'category', 'price'];

/** How items are chosen and ordered. It is the same for pages and streams. */
export const ITEM_PLAN = {
  collection: 'items',
  parameters: [category, sort, minPrice, maxPrice, fields],
  read: (query: Query) => planOf(readWanted(query)),
  fields: (query: Query) => fields.read(query),
} satisfies PlanParameters;
