import type { StreamBody } from '../../engine/edge.ts';
import { problemDocument } from '../../http/problem.ts';
import type { Route } from '../../http/route.ts';
import { cursorThatFits, rowBehind } from '../token/cursor.ts';
import { collectionReplaced } from '../../base/errors.ts';
import { cursorMismatch, type Token } from '../token/token.ts';
import { assertSound } from '../../rows/transcoder.ts';
import { noneOf, orRelease, type Batch } from '../../store/batch.ts';
import { type Bookmark } from '../../store/bookmark.ts';
import { chain, chainAfter, firstSize, planBehind } from '../../pipeline/chain.ts';
import { CHECKPOINT_MS } from '../../pipeline/checkpoints.ts';
import { writeBeforeCut } from '../../pipeline/sink.ts';
import { withHeartbeats } from '../../pipeline/heartbeats.ts';
import { pump } from '../../pipeline/pump.ts';
import { readAfter } from './after.ts';
import { estimate, inTime, ROWS_HEADER } from './estimate.ts';
import { AT_HEADER, timeOf } from './point-in-time.ts';
import { formatOf, FORMATS, readForm, STREAM_TYPES, typeAsked } from './formats/list.ts';
import { readStreamPlan, readStreamQuery, streamParameters, type StreamQuery } from './parameters.ts';
import { unexpectedOrder } from '../query/grammar.ts';
import { resourceFor } from '../query/scope.ts';
import type { Resource } from '../query/resource.ts';
import { routeOf, type RouteDocs, type RouteOptions } from '../route-docs.ts';
import { changesFrom, headersOf } from '../token/feed-cursor.ts';
import type { From, Plan } from '../../store/store.ts';

/** `Incremental` (RFC 10036) asks intermediaries to pass on what they have, X-Accel-Buffering says so to nginx. */
export const INCREMENTAL = { incremental: '?1', 'x-accel-buffering': 'no' };

const PROBLEMS = [
  'conflicting-parameters',
  'invalid-cursor',
  'cursor-mismatch',
  'snapshot-unsupported',
  'snapshot-expired',
  'collection-replaced',
  'too-many-streams',
] as const;

/** GET of all rows: the chain of all batches. Each batch goes out while the next one is being read. */
export function streamRoute(docs: RouteDocs, whole: Resource, options: StreamOptions): Route {
  const { noun } = docs;
  return {
    ...routeOf(docs, 'stream', PROBLEMS),
    cost: 'stream',
    right: 'stream',
    summary: `Stream ${noun.many}`,
    description: `Sends all matching ${noun.many} as they become available, never faster than the client reads. A stream that ends cleanly is complete. A stream that fails is cut: the connection closes before the last chunk. Resume with \`cursor\` or \`after\`.`,
    query: streamParameters(docs.parameters),
    answers: {
      200: {
        description: `The matching ${noun.many} in the order of \`sort\``,
        headers: ['Cache-Control', 'Incremental', 'X-Accel-Buffering'],
        sometimes: ['Estimated-Rows', 'Sorted-By', 'Changes-From'],
        content: Object.fromEntries(FORMATS.flatMap(({ content }) => Object.entries(content(docs)))),
      },
    },
    produces: STREAM_TYPES,
    typeAsked,
    handler: streamHandler(whole, options),
  };
}

type StreamOptions = Pick<RouteOptions, 'transcoder' | 'parked'>;

function streamHandler(whole: Resource, { transcoder, parked }: StreamOptions): Route['handler'] {
  return async ({ request, query: parameters, type, client }) => {
    const resource = resourceFor(whole, client);
    const streams = resource.streamsOf(resource.rows);
    const query = readStreamQuery(parameters, resource);
    const { limit, fields } = query;
    const asksForm = readForm(parameters, formatOf(type), { type, resource, ...query });
    const asked = await readStreamPlan(parameters, query, resource, request.signal);
    const { plan: wanted, from } = await beginningOf(query, asked, resource, request.signal);
    const isWhole = !query.isPiece && limit === Infinity;
    const changes = isWhole ? await changesFrom(resource, wanted, request.signal) : null;
    const plan = { ...wanted, ...changes?.bounds };
    const estimated = from.after ? null : estimate(resource, plan);
    // The first batch is read before the head is sent, so an unavailable store gives a 503 and not a cut stream.
    const first = await streams.begin(plan, from, firstSize(limit), request.signal);
    await orRelease(first, () => assertSound(transcoder.encoder('lines'), first)); // 500, and not a cut
    const rest = planBehind(plan, first);
    const { signal } = request;
    const set = { resource, plan: rest, fields, signal, first, most: limit };
    const form = await orRelease(first, () => asksForm(set, transcoder));
    const isAll = !first.more || first.rows >= limit;
    const about = isAll ? first.rows : await orRelease(first, () => inTime(estimated));
    const order = unexpectedOrder(plan);
    const run: StreamBody['run'] = async (sink) => {
      const cursorOf = (bookmark: Bookmark) => cursorThatFits(resource.name, rest, bookmark);
      const start = from.after ? cursorOf(from.after) : null;
      const now = () => performance.now();
      const proof = { plan, cursorOf, start, now, changes: changes?.cursor };
      const { encoder, tail, proving } = await orRelease(first, () => form.write(proof));
      // While the store is slow, the reader still gets the proof of the rows it has.
      const spaced = (read: AsyncIterable<Batch>) =>
        proving ? withHeartbeats(read, noneOf(first), CHECKPOINT_MS) : read;
      const written = (count: number) => {
        request.notes.rows = proving ? proving.rows : request.notes.rows + count;
      };
      const batches = {
        first: spaced(chain(streams, plan, first, limit, sink.signal)),
        observer: { parked, rows: written },
        again: {
          plan,
          after: (bookmark: Bookmark, given: number) =>
            spaced(chainAfter(streams, rest, bookmark, limit - given, sink.signal)),
        },
      };
      try {
        await pump(batches, encoder, { head: form.head, tail }, sink);
      } catch (error) {
        const line = proving?.error?.(problemDocument(error, request));
        if (line !== undefined) await writeBeforeCut(sink, line);
        throw error;
      }
    };
    return {
      status: 200,
      headers: {
        'content-type': form.contentType,
        'cache-control': 'private, no-cache',
        ...INCREMENTAL,
        ...headersOf(changes),
        ...(!parameters.has('sort') && order !== undefined && { 'sorted-by': order }),
        ...(plan.at !== undefined && { [AT_HEADER]: String(plan.at) }),
        ...(about !== null && { [ROWS_HEADER]: String(Math.min(about, limit)) }),
      },
      body: { kind: 'stream', run },
    };
  };
}

/**
 * Where a stream begins, at what time, and in which collection. AppError `collection-replaced` when a cursor or part
 * names another than the current one, `cursor-mismatch` when the cursor does not fit the parameters.
 */
async function beginningOf(
  { time, cursor, after, part }: Pick<StreamQuery, 'time' | 'cursor' | 'after' | 'part'>,
  asked: Plan,
  resource: Resource,
  signal: AbortSignal,
): Promise<{ plan: Plan; from: From }> {
  if (cursor !== undefined) {
    const known = typeof time === 'bigint' ? { ...asked, at: time } : asked;
    const bookmark = rowBehind(cursor, resource.name, known);
    const { at, since } = cursor;
    if (time === 'present' && at === undefined)
      throw cursorMismatch(
        'The cursor does not come from a snapshot. Omit consistency=snapshot, or start without a cursor.',
      );
    if (time === 'live' && at !== undefined)
      throw cursorMismatch(
        'The cursor comes from a snapshot. Omit consistency=live, or start without a cursor.',
      );
    const plan = within(asked, cursor, part);
    // A member that lags must not miss what changes do not repeat (Changes-From of the stream that was cut).
    const bound = since !== undefined && (asked.since === undefined || since > asked.since) ? { since } : {};
    return { plan: at === undefined ? { ...plan, ...bound } : { ...plan, at }, from: { after: bookmark } };
  }
  const plan = within(asked, part);
  const at = await timeOf(time, resource.rows, signal);
  const timed = at === undefined ? plan : { ...plan, at };
  const from = after === undefined ? {} : { after: await readAfter(after, timed, resource, signal) };
  return { plan: timed, from };
}

/** The plan in the collection of its tokens, if they name one. AppError `collection-replaced` if they name two. */
function within(plan: Plan, ...tokens: readonly (Token | undefined)[]): Plan {
  const [identity, other = identity] = tokens.flatMap((token) => token?.identity ?? []);
  if (identity !== other) throw collectionReplaced();
  return identity === undefined ? plan : { ...plan, identity };
}
