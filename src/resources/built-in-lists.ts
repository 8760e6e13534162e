import { AppError } from '../errors.ts';
import { FORMATS } from '../rows/formats.ts';
import type { RowStore } from '../store/store.ts';
import type { List } from './list.ts';

/** The orders that items always have, with the default name of the index on MongoDB. */
const OF_ITEMS = [
  { filters: [], sort: 'id', index: '_id_' },
  { filters: [], sort: 'price', index: 'price_1__id_1' },
  { filters: ['category'], sort: 'id', index: 'category_1__id_1' },
  { filters: ['category'], sort: 'price', index: 'category_1_price_1__id_1' },
];

/**
 * Items as GET /resources lists them. `category`: whether a key opens one category only. It then has no filter of it,
 * and no number of rows that is not certainly its own.
 */
export function listOfItems(items: Pick<RowStore, 'count' | 'changes'>, { category = false } = {}): List {
  const queries = category
    ? OF_ITEMS.filter(({ filters }) => filters.length > 0).map(({ sort }) => ({
        filters: [],
        sort,
        index: sort,
      }))
    : OF_ITEMS;
  const links = {
    page: '/items',
    stream: '/items/stream',
    partitions: '/items/partitions',
    ...(items.changes && { changes: '/items/changes' }),
  };
  const kinds = [
    ...(category ? [] : [{ field: 'category', kinds: ['string'] }]),
    { field: 'price', kinds: ['number'] },
  ];
  const known = { name: 'items', kinds, missing: [], refused: [], formats: [...FORMATS], links };
  const list: List['list'] = async (signal) => {
    try {
      const { rows, is } = await items.count({ sort: '_id', direction: 1 }, 'estimated', signal);
      return { ...known, ...((!category || is === 'exact') && { rows }), queries };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return { ...known, unavailable: error.message, queries: [] };
    }
  };
  return { name: 'items', list };
}

/** Users as GET /resources lists them: records in order of id. */
export const listOfUsers: List = {
  name: 'users',
  list: () =>
    Promise.resolve({
      name: 'users',
      queries: [{ filters: [], sort: 'id', index: '_id_' }],
      kinds: [],
      missing: [],
      refused: [],
      formats: [],
      links: { page: '/api/users' },
    }),
};
