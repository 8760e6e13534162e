import type { StreamBody } from '../http/edge.ts';
import { problemDocument } from '../http/problem.ts';
import { parseQuery } from '../http/query.ts';
import type { Handler } from '../http/router.ts';
import { decodeCursor, encodeCursor } from '../pages/cursor.ts';
import type { Transcoder } from '../serialize/rows.ts';
import { orRelease } from '../store/batch.ts';
import type { Bookmark } from '../store/bookmark.ts';
import { chain, chainAfter, firstSize } from '../store/chain.ts';
import type { From, ItemStore } from '../store/store.ts';
import { CheckpointEncoder } from '../stream/checkpoints.ts';
import { lastWords } from '../stream/last-words.ts';
import { pump } from '../stream/pump.ts';
import { readAfter } from './after.ts';
import { columnsOfRows } from './columns.ts';
import type { DetectedIdType } from './id.ts';
import { ITEM_PLAN } from './query.ts';
import { streamForm, streamTypeChooser } from './stream-form.ts';
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

/** GET /items/stream: the chain of all batches, each going out while the next one is on its way. */
export function getStream(options: StreamOptions): Handler {
  const { items, lasting, transcoder, now = () => performance.now() } = options;
  const typeOf = streamTypeChooser();
  return async (request) => {
    const query = readStreamQuery(parseQuery(request.query, STREAM_PARAMETERS));
    const { plan, limit } = query;
    const type = typeOf(request, query);
    const from = await beginningOf(query, options, request.signal);
    // The first batch is read before the head is sent: a store that is away is a 503, not a cut stream.
    const first = await items.read(plan, from, firstSize(limit), request.signal);
    const columns = () => columnsOfRows(items, plan, first, limit, request.signal);
    const form = await orRelease(first, () => streamForm(type, query, transcoder, columns));
    const run: StreamBody['run'] = async (sink) => {
      const { head, tail } = form;
      const encoder = await orRelease(first, () => form.encoder());
      const batches = {
        first: chain(lasting, plan, first, limit, sink.signal),
        again: {
          plan,
          after: (bookmark: Bookmark, given: number) =>
            chainAfter(lasting, plan, bookmark, limit - given, sink.signal),
        },
      };
      if (!query.checkpoints) {
        await pump(batches, encoder, { head, tail: () => tail }, sink);
        return;
      }
      const cursorOf = (bookmark: Bookmark) => encodeCursor(ITEM_PLAN.collection, plan, bookmark);
      const start = from.after ? cursorOf(from.after) : null;
      const checked = new CheckpointEncoder(encoder, { plan, cursorOf, start, now });
      try {
        await pump(batches, checked, { head, tail: () => checked.end() }, sink);
      } catch (error) {
        await lastWords(sink, checked.error(problemDocument(error, request)));
        throw error;
      }
    };
    return {
      status: 200,
      headers: { 'content-type': form.contentType, 'cache-control': 'private, no-cache' },
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
