import { changesFrom } from '../changes/from.ts';
import { orFollow, changesRoute } from '../changes/routes.ts';
import type { Route } from '../http/route.ts';
import { pageRoute } from '../pages/route.ts';
import type { PageLimits } from '../pages/query.ts';
import type { Transcoder } from '../rows/rows.ts';
import type { StreamReader } from '../store/readers.ts';
import type { OwnedCollection, RowStore } from '../store/store.ts';
import { idReader, type IdType } from '../streams/id.ts';
import { partitionsRoute } from '../streams/partitions.ts';
import { rowRoute } from '../streams/row.ts';
import { streamRoute } from '../streams/stream.ts';
import type { RowsTold } from '../streams/row-route.ts';
import { ITEM_AFTER } from './after.ts';
import { CHANGE_EXAMPLES } from './change-examples.ts';
import { ITEM } from './item.ts';
import { FIRST_COLUMNS, ITEM_PLAN } from './query.ts';
import { wholeItems, type ItemSource } from './scoped.ts';

export interface ItemOptions {
  readonly items: OwnedCollection;
  readonly streams: StreamReader;
  /** Makes the reader of streams of a part of the items. */
  readonly openStreams: (rows: RowStore) => StreamReader;
  readonly transcoder: Transcoder;
  readonly limits: PageLimits;
  /** undefined: detected from the collection. */
  readonly idType: IdType | undefined;
  /** See StreamOptions. */
  readonly parked?: () => () => void;
  /** See FeedOptions. */
  readonly stopping?: AbortSignal;
  readonly heartbeatMs?: number;
  /** Cache-Control of pages and items. */
  readonly cacheControl: string;
}

const ITEMS: RowsTold = {
  path: '/items',
  tag: 'Items',
  noun: { one: 'item', many: 'items' },
  schema: ITEM,
};

/** Parameters that need another order than that of ids, which partitions are in. */
const ORDERED = ['sort', 'min_price', 'max_price'];

/** The routes of items: of all, or of those that a key opens. */
export function itemRoutes(
  { items, idType: onlyType, ...options }: ItemOptions,
  source: ItemSource = wholeItems(items, options.streams),
) {
  const { rows, streams, plan } = source;
  const shared = {
    ...options,
    rows,
    streams,
    plan,
    ...(plan.shown && { shown: plan.shown }),
    readId: idReader(rows, onlyType),
    changesFrom: changesFrom(rows, ITEM_PLAN.collection),
  };
  const stream = streamRoute(
    { ...ITEMS, id: 'streamItems', examples: STREAM_EXAMPLES },
    { ...shared, columns: FIRST_COLUMNS, after: ITEM_AFTER },
  );
  return {
    list: listItems(shared),
    stream: orFollow(stream, { ...ITEMS, changeExamples: CHANGE_EXAMPLES }, shared),
    changes: changesRoute(
      { ...ITEMS, id: 'listItemChanges', changeExamples: CHANGE_EXAMPLES },
      { ...shared, ordered: ORDERED },
    ),
    partitions: partitionsRoute(
      { ...ITEMS, id: 'listPartitions', example: PARTITIONS_EXAMPLE },
      { ...shared, columns: FIRST_COLUMNS, ordered: ORDERED },
    ),
    get: rowRoute({ ...ITEMS, id: 'getItem', example: ITEM_EXAMPLE, exampleIds: ['d00001'] }, shared),
  } satisfies Record<string, Route>;
}

function listItems(options: Omit<Parameters<typeof pageRoute>[1], 'count'> & { rows: RowStore }): Route {
  const { rows } = options;
  return pageRoute(
    {
      path: '/items',
      id: 'listItems',
      tag: 'Items',
      summary: 'List items',
      description:
        'Returns a page of items. Give at most one of `cursor`, `offset` and `page`; each combines with filter and sort. A page by cursor costs the same at any depth.',
      row: { name: 'Item', plural: 'items', schema: ITEM },
      example: {
        request: '/items?limit=1&fields=price,color&page=3',
        answer: {
          data: [{ id: 'd00003', price: 327, color: 'E' }],
          page: {
            limit: 1,
            hasMore: true,
            nextCursor: 'A_C68gHQkvKgFQAAAAJfaWQABwAAAGQwMDAwMwAAAN0vHg',
            page: 3,
          },
        },
      },
    },
    { ...options, count: (...call) => rows.count(...call) },
  );
}

const STREAM_EXAMPLES = {
  lines: {
    request: '/items/stream?fields=price&limit=2&after=d53938',
    answer: '{"id":"d53939","price":2757}\n{"id":"d53940","price":2757}\n',
  },
  array: {
    request: '/items/stream?format=json&fields=price&limit=1',
    answer: [{ id: 'd00001', price: 326 }],
  },
  table: {
    request: '/items/stream?format=csv&fields=price,color&limit=1',
    answer: 'id,price,color\r\nd00001,326,E\r\n',
  },
};

const PARTITIONS_EXAMPLE = {
  request: '/items/partitions?n=2&fields=price',
  answer: {
    partitions: [
      { url: '/items/stream?part=AtCS8qAUAAAAAnRvAAcAAABkMjY5NzEAAMaXV_M&fields=price' },
      { url: '/items/stream?part=AtCS8qAWAAAAAmZyb20ABwAAAGQyNjk3MQAA_Sow8g&fields=price' },
    ],
  },
};

const ITEM_EXAMPLE = {
  request: '/items/d00003',
  answer: {
    id: 'd00003',
    name: '0.23 ct Good cut diamond, color E, clarity VS1',
    category: 'Good',
    price: 327,
    carat: 0.23,
    color: 'E',
    clarity: 'VS1',
    depth: 56.9,
    table: 65,
    x: 4.05,
    y: 4.07,
    z: 2.31,
  },
};
