import { AppError } from '../errors.ts';
import { finiteNumber, integer, oneOf, text, type Parameter } from '../http/parameter.ts';
import type { Query } from '../http/query.ts';
import type { Plan } from '../store/store.ts';

/** What a client may ask for at most. */
export interface PageLimits {
  readonly maxLimit: number;
  readonly maxOffset: number;
}

export const DEFAULT_LIMIT = 50;
const MAX_CURSOR_BYTES = 2048;
/** id and category are at most this long, in bytes of UTF-8. */
export const MAX_KEY_BYTES = 256;

export const SORTS = ['price_asc', 'price_desc', 'id_asc', 'id_desc'] as const;
export type Sort = (typeof SORTS)[number];

const category = text('category', MAX_KEY_BYTES);
const sort = oneOf('sort', SORTS);
const minPrice = finiteNumber('min_price');
const maxPrice = finiteNumber('max_price');
const cursor = text('cursor', MAX_CURSOR_BYTES);
const offset = integer('offset', 0);
const page = integer('page', 1);

/** The parameters that choose and order rows: the same for pages and streams. */
const PLAN_PARAMETERS: readonly Parameter<unknown>[] = [category, sort, minPrice, maxPrice];

/** The order and filter a query asks for. AppError `conflicting-parameters` for a price range in id order. */
export function readPlan(query: Query): Plan {
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

/** Where a page begins, in the client's own style. */
export type PageStart =
  | { readonly style: 'first' }
  | { readonly style: 'cursor'; readonly cursor: string }
  | { readonly style: 'offset'; readonly offset: number }
  | { readonly style: 'page'; readonly page: number };

export interface PageQuery {
  readonly plan: Plan;
  readonly limit: number;
  readonly start: PageStart;
  /** Rows before the page; 0 for cursors, which do not count. */
  readonly skip: number;
}

/** The names GET /items takes, and how its query is read. */
export function pageQuery(limits: PageLimits): {
  names: readonly string[];
  read: (query: Query) => PageQuery;
} {
  const limit = integer('limit', 1, limits.maxLimit);
  const names = [limit, offset, page, cursor, ...PLAN_PARAMETERS].map((parameter) => parameter.name);
  return {
    names,
    read(query) {
      const rows = limit.read(query) ?? DEFAULT_LIMIT;
      const start = readStart(query);
      const skip =
        start.style === 'offset' ? start.offset : start.style === 'page' ? (start.page - 1) * rows : 0;
      if (skip > limits.maxOffset) {
        throw new AppError(
          'offset-too-deep',
          `${start.style} reaches row ${skip}; the deepest is ${limits.maxOffset}. Take the nextCursor of a page as cursor: its cost does not grow.`,
          { parameter: start.style },
        );
      }
      return { plan: readPlan(query), limit: rows, start, skip };
    },
  };
}

function readStart(query: Query): PageStart {
  const given = ['offset', 'page', 'cursor'].filter((name) => query.has(name));
  if (given.length > 1) {
    throw new AppError('conflicting-parameters', `Give one of ${given.join(' and ')}, not both.`, {
      parameter: given[1] ?? '',
    });
  }
  const rows = offset.read(query);
  if (rows !== undefined) return { style: 'offset', offset: rows };
  const number = page.read(query);
  if (number !== undefined) return { style: 'page', page: number };
  const after = cursor.read(query);
  return after === undefined ? { style: 'first' } : { style: 'cursor', cursor: after };
}

export const FORMATS = ['ndjson', 'json'] as const;
export type Format = (typeof FORMATS)[number];

export interface StreamQuery {
  readonly plan: Plan;
  /** Rows at most; Infinity when the whole set is asked for. */
  readonly limit: number;
  readonly cursor: string | undefined;
  /** undefined: Accept decides. */
  readonly format: Format | undefined;
}

const format = oneOf('format', FORMATS);
const streamLimit = integer('limit', 1);

/** The names GET /items/stream takes. */
export const STREAM_PARAMETERS: readonly string[] = [streamLimit, cursor, format, ...PLAN_PARAMETERS].map(
  (parameter) => parameter.name,
);

export function readStreamQuery(query: Query): StreamQuery {
  return {
    plan: readPlan(query),
    limit: streamLimit.read(query) ?? Infinity,
    cursor: cursor.read(query),
    format: format.read(query),
  };
}
