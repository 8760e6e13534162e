import type { Reply } from '../../engine/edge.ts';
import { conflict } from '../../input/parameter.ts';
import { inName } from '../query/grammar.ts';
import { AppError, changesUnsupported } from '../../base/errors.ts';
import type { Input } from '../../http/route.ts';
import type { Query } from '../../input/query.ts';
import { cursorMismatch } from '../token/token.ts';
import type { Selection } from '../../rows/selection.ts';
import type { ReadBatch } from '../../store/batch.ts';
import { textOf } from '../../store/bookmark.ts';
import { BSON } from '../../store/values/bson.ts';
import type { ChangedKeys, ChangeFeed } from '../../store/change-feed.ts';
import type { FeedReader, StreamReader } from '../../store/turns/readers.ts';
import type { Plan } from '../../store/store.ts';
import { FIRST_BATCH } from '../../pipeline/chain.ts';
import { readFields, readPlan } from '../query/read-plan.ts';
import { resourceFor } from '../query/scope.ts';
import type { Resource } from '../query/resource.ts';
import type { RouteOptions } from '../route-docs.ts';
import type { FollowedResource } from './answer.ts';
import { feedPlaceOf, placeBefore, type FeedCursor } from '../token/feed-cursor.ts';
import { AS_EVENTS, EVENT_STREAM, framed } from './server-sent-events.ts';
import { FeedRun } from './feed-run.ts';
import type { Start } from './follow.ts';
import { assertUnordered, type FeedQuery } from './parameters.ts';
import { pagesOf } from './pages.ts';
import type { Question } from './question.ts';
import { now, replyOf } from './response.ts';

export interface FeedOptions extends Pick<RouteOptions, 'transcoder' | 'parked' | 'heartbeatMs' | 'begun'> {
  /** Aborted when the server stops. Feeds then end at a checkpoint. */
  readonly stopping: AbortSignal;
}

/** The parameters of a feed that the stream to begin anew with does not have. */
const OF_FEEDS = ['since', 'cursor', 'limit', 'wait', 'follow', 'checkpoints', 'format'];

/** What a feed must send, and where it starts. */
interface FeedRequest {
  readonly query: FeedQuery;
  /** Whether a feed without a cursor begins with all rows. */
  readonly walks: boolean;
  readonly path: string;
  readonly resource: Resource;
}

/** Answers with a feed. AppErrors before the first line: the problems of cursors, of plans and of the store. */
export async function feedReply(input: Input, asked: FeedRequest, options: FeedOptions): Promise<Reply> {
  try {
    return await begin(input, asked, options);
  } catch (error) {
    throw withLocation(error, `${asked.path}/stream?${beginAnew(input.query)}`);
  }
}

async function begin(input: Input, asked: FeedRequest, options: FeedOptions): Promise<Reply> {
  const { query, request, type, client } = input;
  const { transcoder, stopping, heartbeatMs, parked, begun } = options;
  const resource = resourceFor(asked.resource, client);
  const { start, shown, ...set } = await beginWalk(resource, query, asked, request.signal);
  const isEvents = type === EVENT_STREAM;
  const own: Question = {
    ...set,
    now,
    stopping,
    heartbeatMs,
    begun,
    name: nameOf(query, type, set.plan),
    lines: () => transcoder.encoder('lines', shown),
    framed: (text) => (isEvents ? framed(text, AS_EVENTS) : text),
  };
  const leg = { start, end: asked.query };
  const run = new FeedRun(pagesOf(own)?.question ?? own, leg, { request, isEvents, parked });
  return replyOf(type, (sink) => run.run(sink));
}

/** A set that is about to be followed: where it begins, and what is shown of its rows. */
export interface BegunWalk extends FollowedResource {
  readonly start: Start;
  readonly shown: Selection;
}

export async function beginWalk(
  resource: Resource,
  query: Query,
  asked: Pick<FeedRequest, 'query' | 'walks'>,
  signal: AbortSignal,
): Promise<BegunWalk> {
  const { name: collection, rows, shown } = resource;
  const streams = resource.streamsOf(rows);
  const { changes } = streams;
  if (!rows.changes || !changes) throw changesUnsupported('This store has no changes.');
  const plan = await readPlan(query, resource, signal, asked.query.cursor, true);
  assertUnordered(plan);
  if (asked.walks && plan.among) throw notFollowed(plan.among.path);
  const from = await startOf(asked, plan, rows.changes, resource, signal);
  const { place, walk, identity } = from;
  const bound = { ...plan, ...(identity !== undefined && { identity }) };
  const fields = readFields(query, resource); // before there is a batch that somebody must release
  const first = await firstOf(from, bound, asked.query, streams, changes, signal);
  return {
    collection,
    changes,
    plan: bound,
    rows: streams,
    start: { place, walk, first },
    shown: shown.pick(fields),
  };
}

/** A walk is in the order of ids, which several values do not have. */
function notFollowed(path: string): AppError {
  const advice = 'Read the stream without it, and go on with changes?since= from its header Changes-From.';
  return conflict(
    'follow',
    `follow=true reads rows in the order of ids, and excludes ${inName(path)}. ${advice}`,
  );
}

/** A text that is the same for followers that get the same lines. */
function nameOf(query: Query, type: string, { equals = [], among, identity }: Plan): string {
  const asked = [...query].filter(([name]) => !OF_FEEDS.includes(name)).sort();
  return JSON.stringify([type, identity, textOf(BSON.serialize({ equals, among })), asked]);
}

async function startOf(
  { query: { cursor }, walks }: Pick<FeedRequest, 'query' | 'walks'>,
  plan: Plan,
  feed: ChangeFeed,
  { rows, name }: Resource,
  signal: AbortSignal,
): Promise<FeedCursor> {
  if (cursor !== undefined) {
    const from = feedPlaceOf(cursor, name, plan);
    if (from.walk === 'over' || walks) return from;
    throw cursorMismatch(
      'The cursor belongs to a stream with follow=true that has not sent all rows. Continue that with cursor.',
      cursor.parameter,
    );
  }
  return { ...(await placeBefore(plan, feed, rows, signal)), walk: walks ? null : 'over' };
}

/**
 * Reads before the answer begins, so that its status says what is wrong. From now on there is nothing to read yet:
 * the first line is a checkpoint, because a reader without one could not continue.
 */
async function firstOf(
  { place, walk }: FeedCursor,
  plan: Plan,
  { cursor, limit }: FeedQuery,
  streams: StreamReader,
  changes: FeedReader,
  signal: AbortSignal,
): Promise<ReadBatch | ChangedKeys> {
  if (walk === 'over' && cursor === undefined) return { keys: [], next: place, isUpToDate: true };
  if (walk === 'over')
    return changes.read(place, { most: Math.min(limit, FIRST_BATCH.rows), waitMs: 0 }, plan.identity, signal);
  const since = { ...plan, ...(place.seen !== undefined && { since: place.seen }) };
  return streams.begin(since, walk ? { after: walk } : {}, FIRST_BATCH, signal);
}

function beginAnew(query: Query): string {
  const kept = [...query].filter(([name]) => !OF_FEEDS.includes(name));
  return new URLSearchParams([['follow', 'true'], ...kept]).toString();
}

/** The error with the URL of the stream to begin anew with, when its cursor has become useless. */
function withLocation(error: unknown, location: string): unknown {
  if (!(error instanceof AppError) || error.status !== 410) return error;
  const { code, message, parameter, headers, cause } = error;
  return new AppError(code, message, {
    headers: { ...headers, location },
    cause,
    ...(parameter !== undefined && { parameter }),
  });
}
