import { conflict, documented, integer, type Parameter } from '../../input/parameter.ts';
import type { Query } from '../../input/query.ts';
import { cursorParameter } from '../page/parameters.ts';
import { readFields, readPlan } from '../query/read-plan.ts';
import type { Resource } from '../query/resource.ts';
import type { Token } from '../token/token.ts';
import { KEY } from '../../store/bookmark.ts';
import type { Plan } from '../../store/store.ts';
import { afterParameter } from './after.ts';
import { formatParameter, OPTIONS } from './formats/list.ts';
import { idsOf, partParameter } from './part.ts';
import { atParameter, consistencyParameter, readTime, type TimeChoice } from './point-in-time.ts';

/** What the query of a stream asks for, without its plan. */
export interface StreamQuery {
  readonly time: TimeChoice;
  readonly fields: readonly string[] | undefined;
  /** The maximum number of rows. Infinity when the whole set is asked for. */
  readonly limit: number;
  /** Where to continue: after a cursor's row, or after a row as its JSON shows it. At most one is set. */
  readonly cursor: Token | undefined;
  readonly after: string | undefined;
  /** The part that holds the rows. */
  readonly part: Token | undefined;
  /** Whether the stream begins inside the set, to be joined to another piece. */
  readonly isPiece: boolean;
}

const streamLimit = documented(
  integer('limit', 1),
  'The largest number of rows. Without it, the stream returns all matching rows.',
  {
    example: 3,
  },
);

const OF_STREAMS: readonly Parameter<unknown>[] = [
  streamLimit,
  cursorParameter,
  afterParameter,
  partParameter,
  consistencyParameter,
  atParameter,
  formatParameter,
  ...OPTIONS.map(({ parameter }) => parameter),
];

export function streamParameters(ofPlan: readonly Parameter<unknown>[]): readonly Parameter<unknown>[] {
  return [...OF_STREAMS, ...ofPlan];
}

/** What a stream is asked for, without its format. AppError `conflicting-parameters` for what excludes each other. */
export function readStreamQuery(query: Query, resource: Resource): StreamQuery {
  if (query.has('cursor') && query.has('after'))
    throw conflict('after', 'Give one of cursor and after, not both.');
  for (const { parameter } of OPTIONS) parameter.read(query);
  return {
    time: readTime(query),
    fields: readFields(query, resource),
    limit: streamLimit.read(query) ?? Infinity,
    cursor: cursorParameter.read(query),
    after: afterParameter.read(query),
    part: partParameter.read(query),
    isPiece: ['cursor', 'after', 'part'].some((name) => query.has(name)),
  };
}

/** Reads a stream's plan without its point in time, within the part if there is one. AppErrors as of readPlan. */
export async function readStreamPlan(
  query: Query,
  { cursor, part }: Pick<StreamQuery, 'cursor' | 'part'>,
  resource: Resource,
  signal: AbortSignal,
): Promise<Plan> {
  const plan = await readPlan(query, resource, signal, cursor ?? part);
  if (part === undefined) return plan;
  assertDivisible(plan, 'part');
  const { since } = part;
  return { ...plan, ids: idsOf(part), ...(since !== undefined && { since }) };
}

/** Parts are ranges of ids, so a plan has none in another order or with a range. AppError `conflicting-parameters`. */
export function assertDivisible({ sort, direction, range }: Plan, parameter: string): void {
  if (range)
    throw conflict(
      sort === KEY ? 'id' : sort,
      `A part is a range of ids, so partitions and part take equalities but no range. Leave out the bounds of ${sort === KEY ? 'id' : sort}, or read the range as one stream.`,
    );
  if (sort === KEY && direction === 1) return;
  throw conflict(parameter, 'part is a range of ids: it requires sort=id_asc.');
}
