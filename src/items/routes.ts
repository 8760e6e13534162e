import { AppError } from '../errors.ts';
import type { Request } from '../http/edge.ts';
import { mediaTypeNegotiator } from '../http/negotiate.ts';
import { parseQuery, quote } from '../http/query.ts';
import { json } from '../http/reply.ts';
import type { Handler, Parameters, Route } from '../http/router.ts';
import { pageHandler } from '../pages/handler.ts';
import type { PageLimits } from '../pages/query.ts';
import { fingerprint } from '../serialize/fingerprint.ts';
import { itemToJson } from '../serialize/item.ts';
import type { Transcoder } from '../serialize/rows.ts';
import { documentOf, type Batch } from '../store/batch.ts';
import type { Bookmark } from '../store/bookmark.ts';
import type { ChainReader } from '../store/chain.ts';
import type { ItemStore } from '../store/store.ts';
import { candidateIds, idTypeLookup, parseId, type DetectedIdType, type IdType } from './id.ts';
import { GET_ITEM, LIST_PARTITIONS, listItems, STREAM_ITEMS } from './operations.ts';
import { ITEM_PLAN } from './query.ts';
import { getPartitions } from './partitions.ts';
import { getStream } from './stream.ts';

export interface ItemRoutesOptions {
  readonly items: ItemStore;
  /** Reads what a stream begins with: less than asked for while many hold theirs. */
  readonly sharing: ChainReader;
  /** Reads what a stream has begun: it waits for a store that is away. */
  readonly lasting: ChainReader;
  readonly transcoder: Transcoder;
  readonly limits: PageLimits;
  /** undefined: looked up in the collection. */
  readonly idType: IdType | undefined;
  /** Wraps the handler of a stream, so that streams are counted. */
  readonly streaming: (handler: Handler) => Handler;
  /** See StreamOptions. */
  readonly stalled?: () => () => void;
  /** Cache-Control of pages and items. */
  readonly cacheControl: string;
}

export function itemRoutes(options: ItemRoutesOptions): readonly Route[] {
  const idType = idTypeLookup(options.items, options.idType);
  return [
    {
      method: 'GET',
      path: '/items',
      doc: listItems(options.limits),
      handler: pageHandler({
        ...options,
        rows: options.items,
        count: (...call) => options.items.count(...call),
        plan: ITEM_PLAN,
      }),
    },
    {
      method: 'GET',
      path: '/items/stream',
      doc: STREAM_ITEMS,
      handler: options.streaming(getStream({ ...options, idType })),
    },
    { method: 'GET', path: '/items/partitions', doc: LIST_PARTITIONS, handler: getPartitions(options.items) },
    { method: 'GET', path: '/items/{id}', doc: GET_ITEM, handler: getItem(options, idType) },
  ];
}

/** GET /items/{id}. */
function getItem(
  { items, cacheControl, idType: set }: ItemRoutesOptions,
  idType: (signal: AbortSignal) => Promise<DetectedIdType>,
): Handler {
  const acceptable = mediaTypeNegotiator(['application/json']);
  return async (request: Request, { id = '' }: Parameters) => {
    acceptable(request);
    parseQuery(request.query, []);
    const only = set && parseId(id, set);
    const keys = set ? (only ? [only] : []) : candidateIds(id, await idType(request.signal));
    const batch = await firstOf(keys, items, request.signal);
    if (!batch) throw new AppError('not-found', `No item has the id ${quote(id)}.`);
    try {
      const text = itemToJson(documentOf(batch));
      request.notes.rows = 1;
      return json(200, text, { etag: `"${fingerprint(Buffer.from(text))}"`, 'cache-control': cacheControl });
    } finally {
      batch.release();
    }
  };
}

/** The first of these rows that is there; null when none is. */
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
