import type { Reply, Request } from '../../engine/edge.ts';
import { problemDocument } from '../../http/problem.ts';
import type { Input } from '../../http/route.ts';
import { NextBegun, type Beginning } from '../../pipeline/next-begun.ts';
import { pump } from '../../pipeline/pump.ts';
import { writeBeforeCut, type Sink } from '../../pipeline/sink.ts';
import type { RowEncoder } from '../../rows/rows.ts';
import type { RouteOptions } from '../route-docs.ts';
import { INCREMENTAL } from '../stream/stream.ts';
import { BY_ID, FeedAnswer, type AnswerOptions } from './answer.ts';
import { AS_EVENTS, EVENT_STREAM, framedLines } from './server-sent-events.ts';
import type { Start } from './follow.ts';

/** Every line is an object. */
const OF_LINES: Beginning = { bytes: Buffer.from('{'), isPart: true };
/** Between events, readers skip blank lines. */
const BEGINNINGS: Readonly<Record<string, Beginning>> = {
  [EVENT_STREAM]: { bytes: Buffer.from('\n'), isPart: false },
};

/** The reply of a feed whose lines `run` writes. */
export function replyOf(type: string, run: (sink: Sink) => Promise<void>): Reply {
  return {
    status: 200,
    headers: { 'content-type': type, 'cache-control': 'private, no-cache', ...INCREMENTAL },
    body: { kind: 'stream', run: (sink) => run(new NextBegun(sink, BEGINNINGS[type] ?? OF_LINES)) },
  };
}

type FollowOptions = Pick<RouteOptions, 'parked' | 'heartbeatMs'> & Pick<AnswerOptions, 'stopping'>;

/** The reply that begins at `start` and sends what is followed. */
export function followReply(
  { request, type }: Pick<Input, 'request' | 'type'>,
  end: AnswerOptions['end'],
  what: Pick<AnswerOptions, 'followed'> & { readonly lines: RowEncoder; readonly start: Start },
  { parked, stopping, heartbeatMs }: FollowOptions,
): Reply {
  const { lines, start, followed } = what;
  const answer = new FeedAnswer(lines, start, { followed, end, now, stopping, heartbeatMs });
  const response = { request, isEvents: type === EVENT_STREAM, parked };
  return replyOf(type, (sink) => sendAnswer(answer, sink, response));
}

/** A clock in milliseconds. */
export const now = () => performance.now();

/** What the writer of a feed knows of its response. */
export interface FeedResponse extends Pick<RouteOptions, 'parked'> {
  readonly request: Request;
  readonly isEvents: boolean;
}

/** Sends an answer. Unless its reader rests at its end, that is the end of the response. */
export async function sendAnswer(
  answer: FeedAnswer,
  sink: Sink,
  { request, isEvents, parked }: FeedResponse,
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
