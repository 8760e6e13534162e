import type { Answer, Route } from '../../http/route.ts';
import { nameOf, type Schema } from '../../base/schema.ts';
import { CHECKPOINT, END, FAILURE } from '../../pipeline/control-lines.ts';
import { decodeToken } from '../token/token.ts';
import { ndjson } from '../stream/formats/ndjson.ts';
import { routeOf, type RouteDocs } from '../route-docs.ts';
import { EVENT_STREAM } from './server-sent-events.ts';
import type { Resource } from '../query/resource.ts';
import { feedReply, type FeedOptions } from './feed.ts';
import { FEED_CHECKPOINT, FEED_END, REMOVED } from './lines.ts';
import { changesParameters, followParameter, readChangesQuery, readFollowQuery } from './parameters.ts';

const [TYPE, ALIAS] = ndjson.types;

/** The problems of feeds beside those of streams. */
const FEED_PROBLEMS = ['changes-unsupported', 'changes-expired'] as const;

export const PROBLEMS = [
  'conflicting-parameters',
  'invalid-cursor',
  'cursor-mismatch',
  'collection-replaced',
  'too-many-streams',
  ...FEED_PROBLEMS,
] as const;

/** GET of what changed in a collection. */
export function changesRoute(docs: RouteDocs, resource: Resource, options: FeedOptions): Route {
  return {
    ...routeOf(docs, 'changes', PROBLEMS),
    cost: 'stream',
    right: 'changes',
    summary: `Get the changes of ${docs.noun.many}`,
    description:
      'Sends the present state of each row that changed since a place, and the keys of rows that are gone or no longer match. Applied by key in this order, a copy equals the set when `upToDate` is true. A change may come more than once.',
    query: changesParameters(docs.unordered ?? []),
    headers: ['Last-Event-ID'],
    answers: { 200: answerOf(docs.noun.many, [docs.row.schema, REMOVED]) },
    produces: TYPES,
    handler: (input) => {
      const asked = readChangesQuery(input, (text, parameter) => decodeToken(text, 'feed', parameter));
      return feedReply(input, { query: asked, walks: false, path: docs.path, resource }, options);
    },
  };
}

export const TYPES = [...ndjson.types, EVENT_STREAM];

/** The answer with the changes of something. `lines`: the schemas of a row's line and of a removal's. */
export function answerOf(what: string, lines: readonly Schema[]): Answer {
  return {
    description: `The changes of ${what}`,
    headers: ['Cache-Control', 'Incremental', 'X-Accel-Buffering'],
    content: {
      [TYPE]: {
        schema: {
          type: 'string',
          description: `One ${lines.map((one) => nameOf(one) ?? 'row').join(' or ')} per line, each line ended by LF. Some lines are a FeedCheckpoint, FeedEnd or Failure instead.`,
        },
        lines: [...lines, FEED_CHECKPOINT, FEED_END, FAILURE],
      },
      [ALIAS]: { schema: { type: 'string', description: `the same as ${TYPE}` } },
      [EVENT_STREAM]: {
        schema: {
          type: 'string',
          description:
            'Server-sent events whose data are these lines. Checkpoints are named `checkpoint` and have their cursor as id; the others are `end` and `failure`.',
        },
      },
    },
  };
}

/** A stream's route that goes on with the changes of its rows when the query has `follow=true`. */
export function orFollow(
  stream: Route,
  { path, row }: RouteDocs,
  resource: Resource,
  options: FeedOptions,
): Route {
  const { 200: whole, ...others } = stream.answers;
  const { [TYPE]: lines, ...forms } = whole?.content ?? {};
  if (!whole || !lines) throw new TypeError(`${stream.path} has no lines`);
  const form = {
    ...lines,
    schema: {
      ...lines.schema,
      description: `${String(lines.schema.description)} With \`follow=true\`, other lines are a Removed, FeedCheckpoint, FeedEnd or Failure.`,
    },
    lines: [row.schema, REMOVED, CHECKPOINT, END, FEED_CHECKPOINT, FEED_END, FAILURE],
  };
  return {
    ...stream,
    query: [...(stream.query ?? []), followParameter],
    needs: (query) => (followParameter.read(query) === 'true' ? [{}, { right: 'changes' }] : [{}]),
    answers: { ...others, 200: { ...whole, content: { [TYPE]: form, ...forms } } },
    problems: [...(stream.problems ?? []), ...FEED_PROBLEMS],
    handler: (input) => {
      const { query, type } = input;
      if (followParameter.read(query) !== 'true') return stream.handler(input);
      const asked = readFollowQuery(query, type);
      return feedReply(input, { query: asked, walks: true, path, resource }, options);
    },
  };
}
