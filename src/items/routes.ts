import { AppError } from '../errors.ts';
import type { Request, StreamBody } from '../http/edge.ts';
import { mediaTypeNegotiator } from '../http/negotiate.ts';
import { parseQuery } from '../http/query.ts';
import { json } from '../http/reply.ts';
import type { Handler, Parameters, Route } from '../http/router.ts';
import { decodeCursor } from '../pages/cursor.ts';
import { pageHandler } from '../pages/handler.ts';
import type { PageLimits } from '../pages/query.ts';
import { fingerprint } from '../serialize/fingerprint.ts';
import { itemToJson } from '../serialize/item.ts';
import type { Transcoder } from '../serialize/rows.ts';
import { documentOf } from '../store/batch.ts';
import { chain, FIRST_BATCH } from '../store/chain.ts';
import type { ItemStore } from '../store/store.ts';
import { pump } from '../stream/pump.ts';
import { detectIdType, parseId, type IdType } from './id.ts';
import { ITEM_PLAN, readStreamQuery, STREAM_PARAMETERS } from './query.ts';

export interface ItemRoutesOptions {
  readonly items: ItemStore;
  /** Reads what a stream has begun: it waits for a store that is away. */
  readonly lasting: Pick<ItemStore, 'read'>;
  readonly transcoder: Transcoder;
  readonly limits: PageLimits;
  /** undefined: looked up in the collection. */
  readonly idType: IdType | undefined;
  /** Wraps the handler of a stream, so that streams are counted. */
  readonly streaming: (handler: Handler) => Handler;
  /** Cache-Control of pages and items. */
  readonly cacheControl: string;
}

export function itemRoutes(options: ItemRoutesOptions): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/items',
      handler: pageHandler({
        ...options,
        rows: options.items,
        count: (...call) => options.items.count(...call),
        plan: ITEM_PLAN,
      }),
    },
    { method: 'GET', path: '/items/stream', handler: options.streaming(getStream(options)) },
    { method: 'GET', path: '/items/{id}', handler: getItem(options) },
  ];
}

const STREAM_FORMATS = {
  'application/x-ndjson': { framing: 'lines', head: '', tail: '' },
  'application/jsonl': { framing: 'lines', head: '', tail: '' },
  'application/json': { framing: 'array', head: '[', tail: ']\n' },
} as const;
type StreamType = keyof typeof STREAM_FORMATS;
const TYPE_OF_FORMAT = { ndjson: 'application/x-ndjson', json: 'application/json' } as const;

/** GET /items/stream: the chain of all batches, each going out while the next one is on its way. */
function getStream({ items, lasting, transcoder }: ItemRoutesOptions): Handler {
  const acceptable = mediaTypeNegotiator(Object.keys(STREAM_FORMATS));
  return async (request) => {
    const query = readStreamQuery(parseQuery(request.query, STREAM_PARAMETERS));
    const type = query.format ? TYPE_OF_FORMAT[query.format] : (acceptable(request) as StreamType);
    const { framing, head, tail } = STREAM_FORMATS[type];
    const from =
      query.cursor === undefined
        ? {}
        : { after: decodeCursor(query.cursor, ITEM_PLAN.collection, query.plan) };
    // The first batch is read before the head is sent: a store that is away is a 503, not a cut stream.
    const size = { ...FIRST_BATCH, rows: Math.min(FIRST_BATCH.rows, query.limit) };
    const first = await items.read(query.plan, from, size, request.signal);
    const run: StreamBody['run'] = async (sink) => {
      const batches = chain(lasting, query.plan, first, query.limit, sink.signal);
      await pump(batches, transcoder.encoder(framing, query.fields), { head, tail: () => tail }, sink);
    };
    return {
      status: 200,
      headers: { 'content-type': type, 'cache-control': 'private, no-cache' },
      body: { kind: 'stream', run },
    };
  };
}

/** GET /items/{id}. */
function getItem({ items, idType, cacheControl }: ItemRoutesOptions): Handler {
  const acceptable = mediaTypeNegotiator(['application/json']);
  let type: IdType | null = idType ?? null;
  return async (request: Request, { id = '' }: Parameters) => {
    acceptable(request);
    parseQuery(request.query, []);
    type ??= await detectIdType(items, request.signal);
    const key = type && parseId(id, type);
    const batch = key && (await items.get(key, request.signal));
    if (!batch) throw new AppError('not-found', `No item has the id ${JSON.stringify(id)}.`);
    try {
      const text = itemToJson(documentOf(batch));
      return json(200, text, { etag: `"${fingerprint(Buffer.from(text))}"`, 'cache-control': cacheControl });
    } finally {
      batch.release();
    }
  };
}
