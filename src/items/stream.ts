import { AppError } from '../errors.ts';
import type { StreamBody } from '../http/edge.ts';
import { mediaTypeNegotiator } from '../http/negotiate.ts';
import { problemDocument } from '../http/problem.ts';
import { parseQuery } from '../http/query.ts';
import type { Handler } from '../http/router.ts';
import { decodeCursor, encodeCursor } from '../pages/cursor.ts';
import type { Transcoder } from '../serialize/rows.ts';
import type { Bookmark } from '../store/bookmark.ts';
import { chain, chainAfter, FIRST_BATCH } from '../store/chain.ts';
import type { From, ItemStore } from '../store/store.ts';
import { CheckpointEncoder } from '../stream/checkpoints.ts';
import { lastWords } from '../stream/last-words.ts';
import { pump } from '../stream/pump.ts';
import { readAfter } from './after.ts';
import type { DetectedIdType } from './id.ts';
import { ITEM_PLAN } from './query.ts';
import { readStreamQuery, STREAM_PARAMETERS, type StreamQuery } from './stream-query.ts';

export interface StreamOptions {
  readonly items: ItemStore;
  /** Reads what a stream has begun: it waits for a store that is away. */
  readonly lasting: Pick<ItemStore, 'read'>;
  readonly transcoder: Transcoder;
  readonly idType: (signal: AbortSignal) => Promise<DetectedIdType>;
  /** A clock in milliseconds. */
  readonly now?: () => number;
}

const STREAM_FORMATS = {
  'application/x-ndjson': { framing: 'lines', head: '', tail: '' },
  'application/jsonl': { framing: 'lines', head: '', tail: '' },
  'application/json': { framing: 'array', head: '[', tail: ']\n' },
} as const;
type StreamType = keyof typeof STREAM_FORMATS;
const TYPE_OF_FORMAT = { ndjson: 'application/x-ndjson', json: 'application/json' } as const;

/** GET /items/stream: the chain of all batches, each going out while the next one is on its way. */
export function getStream(options: StreamOptions): Handler {
  const { items, lasting, transcoder, now = () => performance.now() } = options;
  const acceptable = mediaTypeNegotiator(Object.keys(STREAM_FORMATS));
  return async (request) => {
    const query = readStreamQuery(parseQuery(request.query, STREAM_PARAMETERS));
    const type = query.format ? TYPE_OF_FORMAT[query.format] : (acceptable(request) as StreamType);
    const { framing, head, tail } = STREAM_FORMATS[type];
    if (query.checkpoints && framing !== 'lines') throw onlyLines(type);
    const from = await beginningOf(query, options, request.signal);
    // The first batch is read before the head is sent: a store that is away is a 503, not a cut stream.
    const size = { ...FIRST_BATCH, rows: Math.min(FIRST_BATCH.rows, query.limit) };
    const first = await items.read(query.plan, from, size, request.signal);
    const run: StreamBody['run'] = async (sink) => {
      const { plan, limit } = query;
      const batches = {
        first: chain(lasting, plan, first, limit, sink.signal),
        again: {
          plan,
          after: (bookmark: Bookmark, given: number) =>
            chainAfter(lasting, plan, bookmark, limit - given, sink.signal),
        },
      };
      const rows = transcoder.encoder(framing, query.fields);
      if (!query.checkpoints) {
        await pump(batches, rows, { head, tail: () => tail }, sink);
        return;
      }
      const cursorOf = (bookmark: Bookmark) => encodeCursor(ITEM_PLAN.collection, query.plan, bookmark);
      const start = from.after ? cursorOf(from.after) : null;
      const checked = new CheckpointEncoder(rows, { plan: query.plan, cursorOf, start, now });
      try {
        await pump(batches, checked, { head, tail: () => checked.end() }, sink);
      } catch (error) {
        await lastWords(sink, checked.error(problemDocument(error, request)));
        throw error;
      }
    };
    return {
      status: 200,
      headers: { 'content-type': type, 'cache-control': 'private, no-cache' },
      body: { kind: 'stream', run },
    };
  };
}

/** Where a stream begins: behind the row of a cursor, behind the row that `after` shows, or at its first row. */
async function beginningOf(
  { plan, cursor, after }: StreamQuery,
  options: StreamOptions,
  signal: AbortSignal,
): Promise<From> {
  if (cursor !== undefined) return { after: decodeCursor(cursor, ITEM_PLAN.collection, plan) };
  return after === undefined ? {} : { after: await readAfter(after, plan, { ...options, signal }) };
}

function onlyLines(type: string): AppError {
  return new AppError(
    'conflicting-parameters',
    `checkpoints are lines between rows as lines: ask for format=ndjson; the form is ${type}.`,
    { parameter: 'checkpoints' },
  );
}
