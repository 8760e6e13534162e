import {
  conflict,
  documented,
  integer,
  oneOf,
  parameter,
  text,
  type Parameter,
} from '../../input/parameter.ts';
import type { Input } from '../../http/route.ts';
import type { Query } from '../../input/query.ts';
import { MAX_CURSOR_BYTES } from '../token/cursor.ts';
import { tokenParameter, type Token } from '../token/token.ts';
import { KEY } from '../../store/bookmark.ts';
import type { Plan } from '../../store/store.ts';
import type { FeedEnd } from './answer.ts';
import { EVENT_STREAM } from './server-sent-events.ts';
import { ndjson } from '../stream/formats/ndjson.ts';

const LONGEST_WAIT = 60;

const since = documented(
  text('since', MAX_CURSOR_BYTES),
  'Return what changed after this place: the `cursor` of a checkpoint or an end, or the value of `Changes-From`. Without it, the response has one checkpoint, which means from now on.',
);
const limit = documented(
  integer('limit', 1),
  'The largest number of changes. Without it, the response has all.',
);
const wait = documented(
  integer('wait', 0, LONGEST_WAIT),
  'When nothing has changed, wait this many seconds for the first change.',
);
const follow = documented(
  oneOf('follow', ['true', 'false']),
  'Stay open, and send changes as they come. With `Accept: text/event-stream` always.',
  { fallback: 'false' },
);
export const followParameter = documented(
  oneOf('follow', ['true', 'false']),
  'NDJSON only: after the rows, send what changes, and stay open. Adds checkpoints. Requires the order of ids.',
  { fallback: 'false' },
);

const cursorOfFollowed = tokenParameter('feed', 'cursor', MAX_CURSOR_BYTES);

const OF_CHANGES: readonly Parameter<unknown>[] = [since, limit, wait, follow];

/** Parameters of a stream that does not follow. */
const NOT_FOLLOWED = [
  'limit',
  'after',
  'part',
  'consistency',
  'at',
  'safe',
  'header',
  'excel',
  'locale',
  'columns',
  'schema',
  'json',
];

/** The parameters of the changes of a collection. `ofPlan`: those of its plan that need no other order than that of ids. */
export function changesParameters(ofPlan: readonly Parameter<unknown>[]): readonly Parameter<unknown>[] {
  return [...OF_CHANGES, ...ofPlan];
}

const MOST_SETS = 16;

const resources = documented(
  parameter(
    'resources',
    `1 to ${MOST_SETS} different names of resources separated by commas`,
    { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: MOST_SETS, uniqueItems: true },
    (given) => {
      const names = given.split(',');
      const isSound = !names.includes('') && new Set(names).size === names.length;
      return isSound && names.length <= MOST_SETS ? names : undefined;
    },
  ),
  'The resources whose changes are sent.',
  { example: 'items' },
);

/** The parameters of the changes of several sets. */
export const SEVERAL_CHANGES: readonly Parameter<unknown>[] = [resources, ...OF_CHANGES];

/** The names of the sets that a request asks for. AppError `invalid-parameter`. */
export function readResources(query: Query): readonly string[] {
  return resources.read(query) ?? resources.read(new Map([[resources.name, '']])) ?? [];
}

/** What a request for changes asks for, without its plan. `C`: its cursor. */
export interface FeedQuery<C = Token> extends FeedEnd {
  /** Undefined: from now on. */
  readonly cursor: C | undefined;
}

/**
 * Reads the parameters of changes. An EventSource that connects again names the place where it was, which is later than
 * that of its URL. `decode`: reads a cursor, which came in a parameter or header. AppError `conflicting-parameters`.
 */
export function readChangesQuery<C>(
  { query, type, request }: Pick<Input, 'query' | 'type' | 'request'>,
  decode: (text: string, parameter: string) => C,
): FeedQuery<C> {
  const isEvents = type === EVENT_STREAM;
  const asked = follow.read(query);
  if (isEvents && asked === 'false')
    throw conflict('follow', 'follow must be true with Accept: text/event-stream.');
  const follows = isEvents || asked === 'true';
  const { 'last-event-id': last = '' } = isEvents ? request.headers : {};
  const given = last === '' ? since.read(query) : last;
  const cursor = given === undefined ? undefined : decode(given, last === '' ? since.name : 'Last-Event-ID');
  for (const { name } of [wait, limit]) {
    if (!query.has(name)) continue;
    if (follows) throw conflict(name, `${name} excludes follow: such a response does not end by itself.`);
    if (cursor === undefined) throw conflict(name, `${name} requires since.`);
  }
  const waitMs = 1000 * (wait.read(query) ?? 0);
  const opens = follows || waitMs > 0 || cursor === undefined;
  return { cursor, opens, follows, waitMs, limit: limit.read(query) ?? Infinity };
}

/** Reads the parameters of a stream that follows. AppError `conflicting-parameters` for those that do not fit that. */
export function readFollowQuery(query: Query, type: string): FeedQuery {
  const other = NOT_FOLLOWED.find((name) => query.has(name));
  if (other !== undefined) throw conflict(other, `${other} excludes follow=true.`);
  if (query.get('checkpoints') === 'false')
    throw conflict('checkpoints', 'checkpoints must be true with follow=true.');
  if (!ndjson.types.some((one) => one === type))
    throw conflict('follow', `follow requires format=ndjson; the format is ${type}.`);
  return { cursor: cursorOfFollowed.read(query), opens: true, follows: true, waitMs: 0, limit: Infinity };
}

/** Changes have no order but their own: AppError `conflicting-parameters` for another one, and for a range. */
export function assertUnordered(plan: Plan): void {
  if (plan.range)
    throw conflict(plan.sort, `${plan.sort} has a range. Changes can be filtered by values only.`);
  if (plan.sort !== KEY || plan.direction !== 1)
    throw conflict('sort', 'sort must be id_asc: changes have no other order.');
}
