import type { Reply, Request } from '../../engine/edge.ts';
import { AppError, changesUnsupported } from '../../errors.ts';
import { problemDocument } from '../../http/problem.ts';
import type { Input } from '../../http/route.ts';
import type { Query } from '../../input/query.ts';
import { cursorMismatch } from '../token/token.ts';
import type { Selection } from '../../rows/selection.ts';
import type { RowEncoder } from '../../rows/rows.ts';
import type { ReadBatch } from '../../store/batch.ts';
import { textOf } from '../../store/bookmark.ts';
import { BSON } from '../../store/bson.ts';
import type { ChangedKeys, ChangeFeed, FeedPlace } from '../../store/change-feed.ts';
import type { FeedReader, StreamReader } from '../../store/readers.ts';
import type { Plan } from '../../store/store.ts';
import { FIRST_BATCH } from '../../pipeline/chain.ts';
import { NextBegun, type Beginning } from '../../pipeline/next-begun.ts';
import { pump } from '../../pipeline/pump.ts';
import { writeBeforeCut } from '../../pipeline/sink.ts';
import { INCREMENTAL } from '../stream/stream.ts';
import { readFields, readPlan } from '../query/read-plan.ts';
import { resourceFor } from '../query/part.ts';
import type { Resource } from '../query/resource.ts';
import type { RouteOptions } from '../route-docs.ts';
import {
  BY_ID,
  feedAnswer,
  oneSet,
  type FeedAnswer,
  type FeedEnd,
  type Followed,
  type FollowedSet,
} from './answer.ts';
import { feedPlaceOf, placeBefore, type FeedCursor } from '../token/feed-cursor.ts';
import { AS_EVENTS, EVENT_STREAM, framed, framedLines } from './events.ts';
import type { Start } from './follow.ts';
import { assertUnordered, type FeedQuery } from './parameters.ts';
import type { FeedSums, Standing } from './page.ts';
import { Pages, pagesOf, type Question } from './pages.ts';

export interface FeedOptions extends Pick<RouteOptions, 'transcoder' | 'parked' | 'heartbeatMs'> {
  /** Aborted when the server stops. Feeds then end at a checkpoint. */
  readonly stopping: AbortSignal;
}

/** The parameters of a feed that the stream to begin anew with does not have. */
const OF_FEEDS = ['since', 'cursor', 'limit', 'wait', 'follow', 'checkpoints', 'format'];

/** What a feed must send, and where it starts. */
export interface Asked {
  readonly query: FeedQuery;
  /** Whether a feed without a cursor begins with all rows. */
  readonly walks: boolean;
  readonly path: string;
  readonly resource: Resource;
}

/** Answers with a feed. AppErrors before the first line: the problems of cursors, of plans and of the store. */
export async function feedReply(input: Input, asked: Asked, options: FeedOptions): Promise<Reply> {
  try {
    return await begin(input, asked, options);
  } catch (error) {
    throw withLocation(error, `${asked.path}/stream?${beginAnew(input.query)}`);
  }
}

async function begin(input: Input, asked: Asked, options: FeedOptions): Promise<Reply> {
  const { query, request, type, client } = input;
  const { transcoder } = options;
  const resource = resourceFor(asked.resource, client);
  const { start, shown, ...set } = await beginSet(resource, query, asked, request.signal);
  const isEvents = type === EVENT_STREAM;
  const own: Question = {
    ...{ ...set, now, stopping: options.stopping, heartbeatMs: options.heartbeatMs },
    name: nameOf(query, type, set.plan),
    lines: () => transcoder.encoder('lines', shown),
    framed: (text) => (isEvents ? framed(text, AS_EVENTS) : text),
  };
  const leg = { start, end: asked.query };
  const run = new FeedRun(pagesOf(own)?.question ?? own, leg, { request, isEvents, options });
  return replyOf(type, (sink) => run.run(sink));
}

/** What a reader asks for that goes on after a rest. */
const ON = { opens: false, follows: true, waitMs: 0, limit: Infinity } as const;

/** Where a reader's own loop begins. */
interface Leg {
  readonly start: Start;
  readonly end: FeedEnd;
  readonly sums?: FeedSums;
}

interface To {
  readonly request: Request;
  readonly isEvents: boolean;
  readonly options: FeedOptions;
}

/**
 * The run of a reader: by its own loop, and by the pages of its question while it has everything. There may be thousands
 * at rest, so a reader keeps nothing of its loop then, nor its query, and its question is the one of its pages.
 */
class FeedRun {
  readonly #question: Question;
  readonly #to: To;
  /** Where its loop is about to begin. */
  #leg: Leg | null;
  #rest: Standing | null = null;

  constructor(question: Question, leg: Leg, to: To) {
    this.#question = question;
    this.#leg = leg;
    this.#to = to;
  }

  /** Resolves at the end of the response. */
  async run(sink: Sink): Promise<void> {
    await this.#loop(sink);
    while (this.#rest) {
      await this.#stay(sink);
      await this.#loop(sink);
    }
  }

  async #loop(sink: Sink): Promise<void> {
    const [leg, question] = [this.#leg, this.#question];
    if (!leg) return;
    this.#leg = null;
    const { start, ...asked } = leg;
    const mayRest = (at: FeedPlace) => pagesOf(question)?.reaches(at) ?? true;
    const followed = oneSet(question);
    const answer = feedAnswer(question.lines(), start, { ...question, ...asked, followed, mayRest });
    const { request, isEvents, options } = this.#to;
    await send(answer, sink, request, isEvents, options);
    this.#rest = answer.rest;
  }

  async #stay(sink: Sink): Promise<void> {
    const rest = this.#rest;
    if (!rest) return;
    this.#rest = null;
    const { request, options } = this.#to;
    const wrote = (rows: number) => void (request.notes.rows = rows);
    return Pages.follow(this.#question, rest, { sink, wrote, parked: options.parked }).then(
      ({ at, sums }) => {
        const { place, isUpToDate } = at;
        const first = { keys: [], next: place, isUpToDate };
        this.#leg = { start: { place, walk: 'over', first }, end: ON, sums };
      },
    );
  }
}

type FollowOptions = Pick<FeedOptions, 'parked' | 'stopping' | 'heartbeatMs'>;

/** The reply that begins at `start` and sends what is followed. */
export function followReply(
  { request, type }: Pick<Input, 'request' | 'type'>,
  end: FeedEnd,
  what: { readonly lines: RowEncoder; readonly start: Start; readonly followed: Followed },
  options: FollowOptions,
): Reply {
  const { lines, start, followed } = what;
  const { stopping, heartbeatMs } = options;
  const answer = feedAnswer(lines, start, { followed, end, now, stopping, heartbeatMs });
  return replyOf(type, (sink) => send(answer, sink, request, type === EVENT_STREAM, options));
}

function replyOf(type: string, run: (sink: Sink) => Promise<void>): Reply {
  return {
    status: 200,
    headers: { 'content-type': type, 'cache-control': 'private, no-cache', ...INCREMENTAL },
    body: { kind: 'stream', run: (sink) => run(new NextBegun(sink, BEGINNINGS[type] ?? OF_LINES)) },
  };
}

/** Every line is an object. */
const OF_LINES: Beginning = { bytes: Buffer.from('{'), isPart: true };
/** Between events, readers skip blank lines. */
const BEGINNINGS: Readonly<Record<string, Beginning>> = {
  [EVENT_STREAM]: { bytes: Buffer.from('\n'), isPart: false },
};

/** A clock in milliseconds. */
const now = () => performance.now();

/** A set that is about to be followed: where it begins, and what is shown of its rows. */
export interface BegunSet extends FollowedSet {
  readonly start: Start;
  readonly shown: Selection;
}

export async function beginSet(
  resource: Resource,
  query: Query,
  asked: Pick<Asked, 'query' | 'walks'>,
  signal: AbortSignal,
): Promise<BegunSet> {
  const { name: collection, rows, shown } = resource;
  const streams = resource.streamsOf(rows);
  const { changes } = streams;
  if (!rows.changes || !changes) throw changesUnsupported('This store has no changes.');
  const plan = await readPlan(query, resource, signal, asked.query.cursor, true);
  assertUnordered(plan);
  const from = await startOf(asked, plan, rows.changes, resource, signal);
  const { place, walk, identity } = from;
  const bound = { ...plan, ...(identity !== undefined && { identity }) };
  const fields = readFields(query, resource); // before there is a batch that somebody must release
  const first = await firstOf(from, bound, asked.query, streams, changes, signal);
  return {
    ...{ collection, changes, plan: bound, rows: streams, start: { place, walk, first } },
    shown: shown.pick(fields),
  };
}

/** A text that is the same for followers that get the same lines. */
function nameOf(query: Query, type: string, { equals = [], identity }: Plan): string {
  const asked = [...query].filter(([name]) => !OF_FEEDS.includes(name)).sort();
  return JSON.stringify([type, identity, textOf(BSON.serialize({ equals })), asked]);
}

type Sink = Parameters<Extract<Reply['body'], { kind: 'stream' }>['run']>[0];

async function send(
  answer: FeedAnswer,
  sink: Sink,
  request: Request,
  isEvents: boolean,
  { parked }: Pick<FeedOptions, 'parked'>,
): Promise<void> {
  const { encoder: lines } = answer;
  const events = isEvents ? framedLines(lines, AS_EVENTS) : null;
  const inFrame = (text: string) => (events ? events.framed(Buffer.from(text)).toString() : text);
  try {
    await pump(
      {
        first: answer.batches(sink.signal),
        again: { plan: BY_ID, after: (row) => answer.after(row, sink.signal) },
        observer: { parked, rows: () => void (request.notes.rows = lines.rows) },
      },
      events ?? lines,
      { head: '', tail: () => (answer.rest ? '' : inFrame(lines.end())) },
      sink,
    );
  } catch (error) {
    await writeBeforeCut(sink, inFrame(lines.error(problemDocument(error, request))));
    throw error;
  }
}

async function startOf(
  { query: { cursor }, walks }: Pick<Asked, 'query' | 'walks'>,
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
    ...{ headers: { ...headers, location }, cause },
    ...(parameter !== undefined && { parameter }),
  });
}
