import { AppError } from '../errors.ts';
import { json } from '../http/reply.ts';
import { JSON_TYPE, jsonAnswer, STORE_PROBLEMS, type Route } from '../http/route.ts';
import { cursorThatFits, decodeCursor } from '../pages/cursor.ts';
import { cursorParameter, DEFAULT_LIMIT, limitParameter, type PageLimits } from '../pages/query.ts';
import { named, Type } from '../schema.ts';
import { itemToJson } from '../rows/item.ts';
import { keyOf, type Bookmark } from '../store/bookmark.ts';
import type { Index } from '../store/indexes.ts';
import type { Count, Equality, Plan } from '../store/store.ts';
import { fieldsOf, type RowRoute } from '../streams/told.ts';
import { keyOr, shownPath } from './grammar.ts';
import { notIndexed } from './not-indexed.ts';
import { chooseIndex, isRefusal } from './planner.ts';
import { givenOf, typesOf, VALUES_QUERY } from './query.ts';
import { readEqualities } from './readings.ts';
import { indexesOf, type Resource } from './resource.ts';
import { asKey, valueOf, withKey } from './value-bookmark.ts';

/** The time for all reads of one answer. Milliseconds. */
const TIME_MS = 1000;

const VALUES = named(
  'Values',
  Type.Object(
    {
      data: Type.Array(
        Type.Object(
          {
            value: Type.Unknown({ description: 'the value, as rows show it; null: null or missing' }),
            count: Type.Optional(
              Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
                description: 'the number of rows with this value; null: the time was up',
              }),
            ),
          },
          { additionalProperties: false, description: 'a value' },
        ),
        { description: 'the distinct values, ascending' },
      ),
      page: Type.Object(
        {
          limit: Type.Integer({ minimum: 1, description: 'the largest number of values' }),
          hasMore: Type.Boolean({ description: 'whether more values may follow' }),
          nextCursor: Type.Unsafe<string | null>({
            type: ['string', 'null'],
            description: 'the cursor that continues after the last value',
          }),
        },
        { additionalProperties: false, description: 'how to continue' },
      ),
      countsAre: Type.Optional(
        Type.Unsafe<'exact' | 'partial'>({
          type: 'string',
          enum: ['exact', 'partial'],
          description: 'partial: some counts are null',
        }),
      ),
    },
    { additionalProperties: false, description: 'a page of distinct values' },
  ),
);

/** GET of the distinct values of a field, by a chain that skips along an index from value to value. */
export function valuesRoute(
  told: RowRoute,
  resource: Resource,
  { maxLimit }: PageLimits,
  now: () => number = () => performance.now(),
): Route {
  const limit = limitParameter(maxLimit);
  const { field, count } = VALUES_QUERY;
  return {
    ...fieldsOf(told),
    method: 'GET',
    path: `${told.path}/values`,
    access: 'keyed',
    cost: 'page',
    id: told.id,
    tag: told.tag,
    summary: `List the distinct values of a field of ${told.noun.many}`,
    description:
      'Takes equalities as pages do. Answers within about a second, with fewer values than `limit` if need be: go on with `nextCursor` while `hasMore` is true.',
    query: [limit, cursorParameter, field, count],
    produces: [JSON_TYPE],
    answers: { 200: jsonAnswer('The values', VALUES, ['Cache-Control']) },
    problems: [
      'conflicting-parameters',
      'invalid-cursor',
      'cursor-mismatch',
      ...(told.problems ?? []),
      ...STORE_PROBLEMS,
    ],
    handler: async ({ request, query }) => {
      const { signal } = request;
      const end = now() + TIME_MS;
      const most = limit.read(query) ?? DEFAULT_LIMIT;
      const counts = count.read(query) === 'exact';
      const path = fieldOf(field.read(query));
      const given = givenOf(query);
      if (given.bounds.size > 0)
        throw new AppError('conflicting-parameters', 'values takes no ranges, only equalities.', {
          parameter: shownPath([...given.bounds.keys()][0] ?? ''),
        });
      const indexes = await indexesOf(resource, signal);
      const paths = [...given.equals.keys()].filter((one) => one !== path);
      const index = indexFor(paths, path, indexes);
      if (!index || paths.length < given.equals.size)
        throw notIndexed(refusalFor(paths, path, indexes), indexes, resource.indexLine);
      const inOrder = index.keys.slice(0, paths.length).map((key) => key.path);
      const texts = inOrder.map((one) => [one, given.equals.get(one) ?? ''] as const);
      const equals = await readEqualities(texts, { resource, index, types: typesOf(query), signal });
      const plan: Plan = { index, sort: path, direction: 1, equals };
      const collection = `${resource.name}/values`;
      const cursor = cursorParameter.read(query);
      const values: Bookmark[] = [];
      let after = cursor === undefined ? null : placeOf(decodeCursor(cursor, collection, plan).after);
      let hasMore = true;
      while (values.length < most && (values.length === 0 || now() < end)) {
        const next = await resource.rows.nextValue(index, equals, after, signal);
        if (!next) {
          hasMore = false;
          break;
        }
        values.push(next);
        after = next;
      }
      if (hasMore && values.length === most)
        hasMore = (await resource.rows.nextValue(index, equals, after, signal)) !== null;
      const counted = counts
        ? await countsOf(values, plan, resource, indexes, () => now() < end, signal)
        : null;
      const data = values.map((value, n) => {
        const shown = itemToJson(asKey(value)).slice('{"id":'.length, -1);
        return `{"value":${shown}${counted ? `,"count":${counted[n] ?? 'null'}` : ''}}`;
      });
      const nextCursor = after ? (cursorThatFits(collection, plan, withKey(after)) ?? null) : null;
      const page = JSON.stringify({ limit: most, hasMore, nextCursor: nextCursor ?? cursor ?? null });
      const are = counted ? `,"countsAre":"${counted.includes(null) ? 'partial' : 'exact'}"` : '';
      return json(200, `{"data":[${data.join(',')}],"page":${page}${are}}`, {
        'cache-control': 'private, no-cache',
      });
    },
  };
}

/** AppError `invalid-cursor` for a place that no answer of this route had. */
function placeOf(after: Bookmark): Bookmark {
  const value = valueOf(after);
  if (value) return value;
  throw new AppError(
    'invalid-cursor',
    'The cursor is not valid: it names no value. Use a nextCursor unchanged.',
    {
      parameter: 'cursor',
    },
  );
}

function fieldOf(given: string | undefined): string {
  if (given === undefined)
    throw new AppError('invalid-parameter', 'field is required: the path whose values are listed.', {
      parameter: 'field',
    });
  const path = keyOr(given);
  if (path !== '_id') return path;
  throw new AppError('invalid-parameter', 'Every row has its own id: field must be another path.', {
    parameter: 'field',
  });
}

/** An index that begins with these paths in any order, and goes on with the field. */
function indexFor(paths: readonly string[], field: string, among: readonly Index[]): Index | undefined {
  return among.find(
    ({ refused, keys }) =>
      refused === undefined &&
      keys[paths.length]?.path === field &&
      keys.slice(0, paths.length).every(({ path }) => paths.includes(path)),
  );
}

function refusalFor(paths: readonly string[], field: string, indexes: readonly Index[]) {
  const choice = chooseIndex({ equals: paths, ranges: [], sort: { path: field, direction: 1 } }, indexes);
  if (isRefusal(choice)) return choice;
  return { reason: `No index lists the values of ${field} behind these filters.` };
}

/** The number of rows of each value, null where the time is up or no index counts them. */
async function countsOf(
  values: readonly Bookmark[],
  plan: Plan,
  { rows }: Resource,
  indexes: readonly Index[],
  hasTime: () => boolean,
  signal: AbortSignal,
): Promise<readonly (number | null)[]> {
  const counts: (number | null)[] = [];
  const paths = [...(plan.equals ?? []).map(({ path }) => path), plan.sort];
  const behind = plan.index?.keys[paths.length];
  const byId = chooseIndex({ equals: paths, ranges: [] }, indexes);
  const choice =
    isRefusal(byId) && behind
      ? chooseIndex({ equals: paths, ranges: [], sort: { path: behind.path, direction: 1 } }, indexes)
      : byId;
  for (const value of values) {
    if (isRefusal(choice) || !hasTime()) {
      counts.push(null);
      continue;
    }
    const all: Equality[] = [
      ...(plan.equals ?? []),
      { path: plan.sort, value: keyOf(withKey(value))[plan.sort] },
    ];
    const equals = choice.equals.flatMap((path) => all.filter((one) => one.path === path));
    const { index, sort, direction } = choice;
    const count: Count = await rows.count({ index, sort, direction, equals }, 'exact', signal);
    counts.push(count.is === 'exact' ? count.rows : null);
  }
  return counts;
}
