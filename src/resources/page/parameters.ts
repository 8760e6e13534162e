import { AppError } from '../../base/errors.ts';
import { conflict, documented, integer, oneOf, type Parameter } from '../../input/parameter.ts';
import type { Query } from '../../input/query.ts';
import type { Selection } from '../../rows/selection.ts';
import type { CountMode, Plan } from '../../store/store.ts';
import { readFields } from '../query/read-plan.ts';
import type { Resource } from '../query/resource.ts';
import type { PageLimits } from '../route-docs.ts';
import { MAX_CURSOR_BYTES } from '../token/cursor.ts';
import { tokenParameter, type Token } from '../token/token.ts';

export const DEFAULT_LIMIT = 50;

export const cursorParameter = documented(
  tokenParameter('row', 'cursor', MAX_CURSOR_BYTES),
  'Continue after a row: the `nextCursor` of a page, or the `cursor` of a checkpoint. Repeat its sort, filter and part.',
);
const offset = documented(
  integer('offset', 0),
  'The number of rows to skip, at most `MAX_OFFSET`. Excludes `cursor` and `page`.',
);
const page = documented(
  integer('page', 1),
  'The number of the page, counted from 1 in pages of `limit` rows. Excludes `cursor` and `offset`.',
);
const count = documented(
  oneOf('count', ['none', 'estimated', 'exact']),
  'Add `total`, the number of matching rows, and `totalIs`, its accuracy.',
  { fallback: 'none' },
);

/** What the query of a page asks for, without its plan. */
interface PageRequest {
  readonly collection: string;
  readonly selection: Selection;
  readonly limit: number;
  /** How the total is counted. null: not at all. */
  readonly count: CountMode | null;
  /** Where the page begins, in the style that the client chose: at most one of these. */
  readonly cursor: Token | undefined;
  readonly offset: number | undefined;
  readonly page: number | undefined;
  /** The number of rows before the page. 0 for cursors, which do not count rows. */
  readonly skip: number;
  /** Whether the client named no order. */
  readonly isUnordered: boolean;
}

export interface PageQuery extends PageRequest {
  readonly plan: Plan;
}

/** The parameters of a paged collection. `counts`: whether it can be counted. */
export function pageParameters(
  { maxLimit }: PageLimits,
  ofPlan: readonly Parameter<unknown>[],
  counts: boolean,
): readonly Parameter<unknown>[] {
  return [limitParameter(maxLimit), offset, page, cursorParameter, ...(counts ? [count] : []), ...ofPlan];
}

export function limitParameter(maxLimit: number): Parameter<number> {
  return documented(
    integer('limit', 1, maxLimit),
    'The largest number of rows on the page. A value above the maximum is refused, not lowered.',
    {
      example: 2,
      fallback: DEFAULT_LIMIT,
    },
  );
}

/** Returns the reader of a page's query without its plan. AppErrors `offset-too-deep`, `conflicting-parameters`. */
export function pageQuery(limits: PageLimits): (query: Query, resource: Resource) => PageRequest {
  const limit = limitParameter(limits.maxLimit);
  return (query, resource) => {
    const rows = limit.read(query) ?? DEFAULT_LIMIT;
    const given = ['offset', 'page', 'cursor'].filter((name) => query.has(name));
    if (given.length > 1) throw conflict(given[1] ?? '', `Give one of ${given.join(' and ')}, not both.`);
    const start = { offset: offset.read(query), page: page.read(query) };
    const skip = start.page === undefined ? (start.offset ?? 0) : (start.page - 1) * rows;
    if (skip > limits.maxOffset) {
      const [parameter = ''] = given;
      throw new AppError(
        'offset-too-deep',
        `${parameter} skips ${skip} rows; the maximum is ${limits.maxOffset}. Pass the nextCursor of a page as cursor: its cost does not grow with depth.`,
        { parameter },
      );
    }
    const asked = count.read(query) ?? 'none';
    return {
      ...start,
      cursor: cursorParameter.read(query),
      limit: rows,
      skip,
      count: asked === 'none' ? null : asked,
      collection: resource.name,
      selection: resource.shown.pick(readFields(query, resource)),
      isUnordered: !query.has('sort'),
    };
  };
}
