import { AppError } from '../errors.ts';
import type { Reply, Request } from '../http/edge.ts';
import { mediaTypeNegotiator } from '../http/negotiate.ts';
import { parseQuery } from '../http/query.ts';
import { bytes, json } from '../http/reply.ts';
import type { Handler, Parameters, Route } from '../http/router.ts';
import { fingerprint } from '../serialize/fingerprint.ts';
import { itemToJson } from '../serialize/item.ts';
import type { Transcoder } from '../serialize/rows.ts';
import type { Batch } from '../store/batch.ts';
import { chain, FIRST_BATCH } from '../store/chain.ts';
import type { From, ItemStore } from '../store/store.ts';
import { pump } from '../stream/pump.ts';
import { decodeCursor } from './cursor.ts';
import { detectIdType, parseId, type IdType } from './id.ts';
import { PAGE_HEAD, pageInfo, pageLinks, pageTail } from './page.ts';
import { pageQuery, readStreamQuery, STREAM_PARAMETERS, type PageLimits, type PageQuery } from './query.ts';

export interface ItemRoutesOptions {
  readonly items: ItemStore;
  readonly transcoder: Transcoder;
  readonly limits: PageLimits;
  /** undefined: looked up in the collection. */
  readonly idType: IdType | undefined;
  /** Cache-Control of pages and items. */
  readonly cacheControl: string;
}

/** A page's rows up to this size are one answer with an ETag; larger pages are streamed. Bytes of BSON. */
const PAGE_BYTES = 16 * 1024 * 1024;
const PAGE_CHUNK_BYTES = 64 * 1024;

export function itemRoutes(options: ItemRoutesOptions): readonly Route[] {
  return [
    { method: 'GET', path: '/items', handler: getPage(options) },
    { method: 'GET', path: '/items/stream', handler: getStream(options) },
    { method: 'GET', path: '/items/{id}', handler: getItem(options) },
  ];
}

/** GET /items: one batch, in the page envelope. */
function getPage({ items, transcoder, limits, cacheControl }: ItemRoutesOptions): Handler {
  const { names, read } = pageQuery(limits);
  const acceptable = mediaTypeNegotiator(['application/json']);
  return async (request) => {
    const type = acceptable(request);
    const parameters = parseQuery(request.query, names);
    const query = read(parameters);
    const first = await items.read(
      query.plan,
      pageFrom(query),
      { rows: query.limit, bytes: PAGE_BYTES },
      request.signal,
    );
    const headers = { 'content-type': type, 'cache-control': cacheControl };
    if (first.more && first.rows < query.limit)
      return largePage(first, query, headers, items, transcoder, request);

    const info = pageInfo(query, first);
    const body = collect(first, PAGE_HEAD, pageTail(info), transcoder);
    const link = pageLinks(request.path, new URLSearchParams([...parameters]), query, info, limits.maxOffset);
    return bytes(200, body, { ...headers, etag: `W/"${fingerprint(body)}"`, link });
  };
}

function pageFrom({ plan, start, skip }: PageQuery): From {
  if (start.style === 'cursor') return { after: decodeCursor(start.cursor, plan) };
  return skip > 0 ? { skip } : {};
}

/** A page whose rows outgrow one batch goes out as a stream, so that its size costs no memory; it has no ETag. */
function largePage(
  first: Batch,
  query: PageQuery,
  headers: Reply['headers'],
  items: ItemStore,
  transcoder: Transcoder,
  request: Request,
): Reply {
  let end: Pick<Batch, 'last' | 'more'> = first;
  const batches = async function* () {
    for await (const batch of chain(items, query.plan, first, query.limit, request.signal)) {
      end = batch;
      yield batch;
    }
  };
  const run: StreamRun = async (sink) => {
    const tail = () => pageTail(pageInfo(query, end));
    await pump(batches(), transcoder.encoder('array'), { head: PAGE_HEAD, tail }, sink);
  };
  return { status: 200, headers, body: { kind: 'stream', run } };
}

type StreamRun = Extract<Reply['body'], { kind: 'stream' }>['run'];

/** All of a batch's rows between head and tail, as one piece of bytes. Releases the batch. */
function collect(batch: Batch, head: string, tail: string, transcoder: Transcoder): Buffer {
  const encoder = transcoder.encoder('array');
  try {
    const pieces: Uint8Array[] = [Buffer.from(head)];
    for (const chunk of encoder.encode(batch, PAGE_CHUNK_BYTES)) pieces.push(Buffer.from(chunk));
    pieces.push(Buffer.from(tail));
    return Buffer.concat(pieces);
  } finally {
    encoder.close();
    batch.release();
  }
}

const STREAM_FORMATS = {
  'application/x-ndjson': { framing: 'lines', head: '', tail: '' },
  'application/jsonl': { framing: 'lines', head: '', tail: '' },
  'application/json': { framing: 'array', head: '[', tail: ']\n' },
} as const;
type StreamType = keyof typeof STREAM_FORMATS;
const TYPE_OF_FORMAT = { ndjson: 'application/x-ndjson', json: 'application/json' } as const;

/** GET /items/stream: the chain of all batches, each going out while the next one is on its way. */
function getStream({ items, transcoder }: ItemRoutesOptions): Handler {
  const acceptable = mediaTypeNegotiator(Object.keys(STREAM_FORMATS));
  return async (request) => {
    const query = readStreamQuery(parseQuery(request.query, STREAM_PARAMETERS));
    const type = query.format ? TYPE_OF_FORMAT[query.format] : (acceptable(request) as StreamType);
    const { framing, head, tail } = STREAM_FORMATS[type];
    const from = query.cursor === undefined ? {} : { after: decodeCursor(query.cursor, query.plan) };
    // The first batch is read before the head is sent: a store that is away is a 503, not a cut stream.
    const size = { ...FIRST_BATCH, rows: Math.min(FIRST_BATCH.rows, query.limit) };
    const first = await items.read(query.plan, from, size, request.signal);
    const run: StreamRun = async (sink) => {
      const batches = chain(items, query.plan, first, query.limit, sink.signal);
      await pump(batches, transcoder.encoder(framing), { head, tail: () => tail }, sink);
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

/** The document of a batch of one row: what stands behind the element's type and name. */
function documentOf(batch: Batch): Uint8Array {
  const row = batch.slot.bytes(batch.start + batch.length).subarray(batch.start);
  return row.subarray(row.indexOf(0) + 1);
}
