import type { StreamBody } from '../engine/edge.ts';
import { problemDocument } from '../http/problem.ts';
import { STORE_PROBLEMS, type Route } from '../http/route.ts';
import { cursorMismatch, cursorThatFits, decodeCursor } from '../pages/cursor.ts';
import type { PlanParameters } from '../pages/query.ts';
import { nameOf } from '../schema.ts';
import { checkMark } from '../pages/mark.ts';
import type { Transcoder } from '../rows/rows.ts';
import { EVERYTHING } from '../rows/selection.ts';
import { noneOf, orRelease, type Batch } from '../store/batch.ts';
import type { Bookmark } from '../store/bookmark.ts';
import { chain, chainAfter, firstSize, planBehind } from '../stream/chain.ts';
import type { StreamReader } from '../store/readers.ts';
import type { From, RowStore, Plan } from '../store/store.ts';
import { CHECKPOINT_MS, CheckpointEncoder } from '../stream/checkpoints.ts';
import { CHECKPOINT, END, FAILURE } from '../stream/control-lines.ts';
import { writeBeforeCut } from '../stream/sink.ts';
import { withHeartbeats } from '../stream/heartbeats.ts';
import { pump } from '../stream/pump.ts';
import { readAfter, type AfterForm } from './after.ts';
import { columnsOfRows } from './columns.ts';
import { estimator, ROWS_HEADER } from './estimate.ts';
import type { DetectedIdType } from './id.ts';
import { AT_HEADER, timeOf } from './point-in-time.ts';
import { STREAM_TYPES, type StreamType } from '../rows/formats.ts';
import { assertFits, streamForm, typeAsked } from './form.ts';
import {
  readStreamPlan,
  readStreamQuery,
  streamParameters,
  type StreamPlan,
  type StreamQuery,
} from './query.ts';
import { fieldsOf, type RowRoute } from './told.ts';

export interface StreamOptions {
  readonly rows: RowStore;
  readonly streams: StreamReader;
  readonly transcoder: Transcoder;
  readonly plan: PlanParameters;
  /** The columns that every table begins with, the first of them `id`. */
  readonly columns: readonly string[];
  readonly after: AfterForm;
  readonly idType: (signal: AbortSignal) => Promise<DetectedIdType>;
  /** A clock in milliseconds. */
  readonly now?: () => number;
  /** Called when a stream stalls. The returned function is called when the stream goes on or ends. */
  readonly parked?: () => () => void;
}

/** GET of all rows: the chain of all batches. Each batch goes out while the next one is being read. */
export function streamRoute(told: RowRoute, options: StreamOptions): Route {
  const { noun, schema, tag, examples = {} } = told;
  const { lines, array, table } = examples;
  return {
    ...fieldsOf(told),
    method: 'GET',
    path: `${told.path}/stream`,
    access: 'keyed',
    cost: 'stream',
    id: told.id,
    tag,
    summary: `Stream ${noun.many}`,
    description: `Sends all matching ${noun.many} as they become available, never faster than the client reads. A stream that ends cleanly is complete. A stream that fails is cut: the connection closes before the last chunk. Resume with \`cursor\` or \`after\`.`,
    query: streamParameters(options.plan),
    answers: {
      200: {
        description: `The matching ${noun.many} in the order of \`sort\``,
        headers: ['Cache-Control'],
        sometimes: ['Estimated-Rows'],
        content: {
          'application/x-ndjson': {
            schema: {
              type: 'string',
              description: `One ${nameOf(schema) ?? 'row'} per line, each line ended by LF. With \`checkpoints=true\`, some lines are a Checkpoint, End or Failure instead.`,
            },
            lines: [schema, CHECKPOINT, END, FAILURE],
            ...(lines && { example: lines }),
          },
          'application/jsonl': {
            schema: { type: 'string', description: 'the same as application/x-ndjson' },
          },
          'application/json': {
            schema: { type: 'array', items: schema, description: `all matching ${noun.many}` },
            ...(array && { example: array }),
          },
          'text/csv': {
            schema: {
              type: 'string',
              description: `CSV (RFC 4180) in UTF-8, one ${noun.one} per record`,
            },
            ...(table && { example: table }),
          },
        },
      },
    },
    problems: [
      'conflicting-parameters',
      'invalid-cursor',
      'cursor-mismatch',
      'snapshot-unsupported',
      'snapshot-expired',
      'collection-replaced',
      'too-many-streams',
      ...(told.problems ?? []),
      ...STORE_PROBLEMS,
    ],
    produces: STREAM_TYPES,
    typeAsked,
    handler: streamHandler(options),
  };
}

function streamHandler(options: StreamOptions): Route['handler'] {
  const {
    rows,
    streams,
    transcoder,
    now = () => performance.now(),
    parked = () => () => undefined,
  } = options;
  const estimate = estimator(rows, { now });
  return async ({ request, query: parameters, type: chosen }) => {
    const query = readStreamQuery(parameters, options.plan);
    const type = chosen as StreamType;
    assertFits(query, type);
    const { limit } = query;
    const asked = await readStreamPlan(parameters, options.plan, request.signal);
    const { plan, from } = await beginningOf({ ...query, ...asked }, options, request.signal);
    const estimated = from.after ? null : estimate(plan);
    // The first batch is read before the head is sent, so an unavailable store gives a 503 and not a cut stream.
    const first = await streams.begin(plan, from, firstSize(limit), request.signal);
    const rest = planBehind(plan, first);
    const wanted = { always: options.columns, most: limit };
    const { shown = EVERYTHING } = options.plan;
    const columns = () => columnsOfRows(rows, rest, first, wanted, request.signal, shown);
    const form = await orRelease(first, () => streamForm(type, query, transcoder, columns, shown));
    const isAll = !first.more || first.rows >= limit;
    const about = isAll ? first.rows : await orRelease(first, () => estimated?.() ?? Promise.resolve(null));
    const run: StreamBody['run'] = async (sink) => {
      const { head, tail } = form;
      const encoder = await orRelease(first, () => form.encoder());
      // While the store is slow, the reader still gets the proof of the rows it has.
      const spaced = (read: AsyncIterable<Batch>) =>
        query.checkpoints ? withHeartbeats(read, noneOf(first), CHECKPOINT_MS) : read;
      const batches = {
        first: spaced(chain(streams, plan, first, limit, sink.signal)),
        observer: { parked, rows: (count: number) => void (request.notes.rows += count) },
        again: {
          plan,
          after: (bookmark: Bookmark, given: number) =>
            spaced(chainAfter(streams, rest, bookmark, limit - given, sink.signal)),
        },
      };
      if (!query.checkpoints) {
        await pump(batches, encoder, { head, tail: () => tail }, sink);
        return;
      }
      const cursorOf = (bookmark: Bookmark) => cursorThatFits(options.plan.collection, rest, bookmark);
      const start = from.after ? cursorOf(from.after) : null;
      const checked = new CheckpointEncoder(encoder, { plan, cursorOf, start, now });
      try {
        await pump(batches, checked, { head, tail: () => checked.end() }, sink);
      } catch (error) {
        await writeBeforeCut(sink, checked.error(problemDocument(error, request)));
        throw error;
      }
    };
    return {
      status: 200,
      headers: {
        'content-type': form.contentType,
        'cache-control': 'private, no-cache',
        ...(plan.at !== undefined && { [AT_HEADER]: String(plan.at) }),
        ...(about !== null && { [ROWS_HEADER]: String(Math.min(about, limit)) }),
      },
      body: { kind: 'stream', run },
    };
  };
}

/**
 * Where a stream begins: after the row of a cursor, after the row that `after` shows, or at its first row. Also at what
 * time, and in which collection if a cursor or part names one. AppError `collection-replaced` when that is not the
 * current collection, `cursor-mismatch` when the cursor does not fit the parameters.
 */
async function beginningOf(
  { plan: asked, partMark, time, cursor, after }: StreamQuery & StreamPlan,
  options: StreamOptions,
  signal: AbortSignal,
): Promise<{ plan: Plan; from: From }> {
  if (cursor !== undefined) {
    const known = typeof time === 'bigint' ? { ...asked, at: time } : asked;
    const { at, mark, after: bookmark } = decodeCursor(cursor, options.plan.collection, known);
    if (time === 'present' && at === undefined)
      throw cursorMismatch(
        'The cursor does not come from a snapshot. Omit consistency=snapshot, or start without a cursor.',
      );
    if (time === 'live' && at !== undefined)
      throw cursorMismatch(
        'The cursor comes from a snapshot. Omit consistency=live, or start without a cursor.',
      );
    const plan = await marked(asked, [partMark, mark], options, signal);
    return { plan: at === undefined ? plan : { ...plan, at }, from: { after: bookmark } };
  }
  const plan = await marked(asked, [partMark], options, signal);
  const at = await timeOf(time, options.rows, signal);
  const timed = at === undefined ? plan : { ...plan, at };
  const from = after === undefined ? {} : { after: await readAfter(after, timed, { ...options, signal }) };
  return { plan: timed, from };
}

/**
 * The plan, bound to the collection of these marks. Without a mark, the first read decides on the collection. AppError
 * `collection-replaced` when a mark is of another collection.
 */
async function marked(
  plan: Plan,
  marks: readonly (number | undefined)[],
  { rows }: StreamOptions,
  signal: AbortSignal,
): Promise<Plan> {
  if (marks.every((mark) => mark === undefined)) return plan;
  const identity = await rows.identity(signal);
  for (const mark of marks) checkMark(mark, identity);
  return identity === undefined ? plan : { ...plan, identity };
}
