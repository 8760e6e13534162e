import { AppError } from '../errors.ts';
import { quote } from '../input/query.ts';
import { json } from '../http/reply.ts';
import { JSON_TYPE, jsonAnswer, STORE_PROBLEMS, type Route } from '../http/route.ts';
import { pageRoute } from '../pages/route.ts';
import type { PageLimits } from '../pages/query.ts';
import { fingerprint } from '../rows/fingerprint.ts';
import { itemToJson } from '../rows/item.ts';
import type { Transcoder } from '../rows/rows.ts';
import { documentOf, type Batch } from '../store/batch.ts';
import type { Bookmark } from '../store/bookmark.ts';
import type { StreamReader } from '../store/readers.ts';
import type { ItemStore } from '../store/store.ts';
import { candidateIds, idTypeLookup, parseId, type DetectedIdType, type IdType } from './id.ts';
import { ITEM } from './item.ts';
import { listPartitions } from './partitions.ts';
import { ITEM_PLAN } from './query.ts';
import { streamItems } from './stream.ts';

export interface ItemOptions {
  readonly items: ItemStore;
  readonly streams: StreamReader;
  readonly transcoder: Transcoder;
  readonly limits: PageLimits;
  /** undefined: detected from the collection. */
  readonly idType: IdType | undefined;
  /** See StreamOptions. */
  readonly parked?: () => () => void;
  /** Cache-Control of pages and items. */
  readonly cacheControl: string;
}

/** The routes of items. */
export function itemRoutes(options: ItemOptions) {
  const idType = idTypeLookup(options.items, options.idType);
  return {
    list: listItems(options),
    stream: streamItems({ ...options, idType }),
    partitions: listPartitions(options.items),
    get: getItem(options, idType),
  } satisfies Record<string, Route>;
}

function listItems(options: ItemOptions): Route {
  const { items } = options;
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
            nextCursor: 'AfC68gEVAAAAAl9pZAAHAAAAZDAwMDAzAABdT_iI',
            page: 3,
          },
        },
      },
    },
    { ...options, rows: items, count: (...call) => items.count(...call), plan: ITEM_PLAN },
  );
}

/** GET /items/{id}. */
function getItem(
  { items, cacheControl, idType: set }: ItemOptions,
  idType: (signal: AbortSignal) => Promise<DetectedIdType>,
): Route {
  return {
    method: 'GET',
    path: '/items/{id}',
    access: 'keyed',
    cost: 'page',
    id: 'getItem',
    tag: 'Items',
    summary: 'Get an item',
    description:
      'If the id equals the path of another resource, such as `stream`, percent-encode its first letter.',
    parameters: {
      id: {
        type: 'string',
        minLength: 1,
        description: 'the id of the item, as its JSON shows it',
        examples: ['d00001'],
      },
    },
    headers: ['If-None-Match'],
    answers: {
      200: jsonAnswer('The item', ITEM, ['ETag', 'Cache-Control'], {
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
      }),
      304: {
        description: 'The client already has this state of the item: its ETag is in If-None-Match',
        headers: ['ETag'],
      },
    },
    problems: ['invalid-url', 'not-found', 'invalid-header', 'precondition-failed', ...STORE_PROBLEMS],
    produces: [JSON_TYPE],
    handler: async ({ request, parameters: { id = '' } }) => {
      const only = set && parseId(id, set);
      const keys = set ? (only ? [only] : []) : candidateIds(id, await idType(request.signal));
      const batch = await firstOf(keys, items, request.signal);
      if (!batch) throw new AppError('not-found', `No item has the id ${quote(id)}.`);
      try {
        const text = itemToJson(documentOf(batch));
        request.notes.rows = 1;
        return json(200, text, {
          etag: `"${fingerprint(Buffer.from(text))}"`,
          'cache-control': cacheControl,
        });
      } finally {
        batch.release();
      }
    },
  };
}

/** The first of these rows that exists. Null when none does. */
async function firstOf(
  ids: readonly Bookmark[],
  items: ItemStore,
  signal: AbortSignal,
): Promise<Batch | null> {
  for (const id of ids) {
    const batch = await items.get(id, signal);
    if (batch) return batch;
  }
  return null;
}
