import { AppError } from '../errors.ts';
import { finiteNumber, integer, names, oneOf, text } from '../http/parameter.ts';
import type { Query } from '../http/query.ts';
import { cursorParameter, type PlanParameters } from '../pages/query.ts';
import type { Plan } from '../store/store.ts';

/** id and category are at most this long, in bytes of UTF-8. */
export const MAX_KEY_BYTES = 256;

const MAX_FIELDS = 100;

export const SORTS = ['price_asc', 'price_desc', 'id_asc', 'id_desc'] as const;
export type Sort = (typeof SORTS)[number];

const category = text('category', MAX_KEY_BYTES);
const sort = oneOf('sort', SORTS);
const minPrice = finiteNumber('min_price');
const maxPrice = finiteNumber('max_price');
const fields = names('fields', MAX_FIELDS, MAX_KEY_BYTES);

/** The order and filter a query asks for. AppError `conflicting-parameters` for a price range in id order. */
function readPlan(query: Query): Plan {
  const low = minPrice.read(query);
  const high = maxPrice.read(query);
  const ranged = low !== undefined || high !== undefined;
  const asked = sort.read(query) ?? (ranged ? 'price_asc' : 'id_asc');
  const order = asked.startsWith('price') ? 'price' : 'id';
  if (ranged && order === 'id') {
    // A price range in id order is a filtered scan of everything: no index serves it.
    throw new AppError(
      'conflicting-parameters',
      `min_price and max_price go with a price sort; sort is ${asked}.`,
      {
        parameter: 'sort',
      },
    );
  }
  const only = category.read(query);
  return {
    order,
    direction: asked.endsWith('asc') ? 1 : -1,
    ...(only !== undefined && { category: only }),
    ...(low !== undefined && { minPrice: low }),
    ...(high !== undefined && { maxPrice: high }),
  };
}

/** How items are chosen and ordered: the same for pages and streams. */
export const ITEM_PLAN: PlanParameters = {
  collection: 'items',
  parameters: [category, sort, minPrice, maxPrice, fields],
  read: readPlan,
  fields: (query) => fields.read(query),
};

export const FORMATS = ['ndjson', 'json'] as const;
export type Format = (typeof FORMATS)[number];

export interface StreamQuery {
  readonly plan: Plan;
  readonly fields: readonly string[] | undefined;
  /** Rows at most; Infinity when the whole set is asked for. */
  readonly limit: number;
  readonly cursor: string | undefined;
  /** undefined: Accept decides. */
  readonly format: Format | undefined;
}

const format = oneOf('format', FORMATS);
const streamLimit = integer('limit', 1);

/** The names GET /items/stream takes. */
export const STREAM_PARAMETERS: readonly string[] = [
  streamLimit,
  cursorParameter,
  format,
  ...ITEM_PLAN.parameters,
].map((parameter) => parameter.name);

export function readStreamQuery(query: Query): StreamQuery {
  return {
    plan: readPlan(query),
    fields: fields.read(query),
    limit: streamLimit.read(query) ?? Infinity,
    cursor: cursorParameter.read(query),
    format: format.read(query),
  };
}
