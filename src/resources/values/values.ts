import { json } from '../../http/reply.ts';
import { JSON_TYPE, jsonAnswer, type Route } from '../../http/route.ts';
import { cursorThatFits, rowBehind } from '../token/cursor.ts';
import { cursorParameter, DEFAULT_LIMIT, limitParameter } from '../page/parameters.ts';
import { refusal, type Token } from '../token/token.ts';
import { rowToJson } from '../../rows/row-json.ts';
import { conflict, documented, invalid, oneOf, text, type Parameter } from '../../input/parameter.ts';
import type { Query } from '../../input/query.ts';
import type { Bookmark } from '../../store/bookmark.ts';
import type { Index } from '../../store/indexes.ts';
import type { Plan } from '../../store/store.ts';
import { routeOf, type PageLimits, type RouteDocs } from '../route-docs.ts';
import type { Form } from '../query/form.ts';
import { inName, keyOr, shownPath, splitName } from '../query/grammar.ts';
import { asKey, countValues, limitedTime, listValues, valueOf, withKey } from './list-values.ts';
import type { ValuesRequest, CursorOf } from './list-values.ts';
import { notIndexed } from '../query/not-indexed.ts';
import { resourceFor, withinScope } from '../query/scope.ts';
import { chooseIndex, isRefusal } from '../query/planner.ts';
import { givenOf } from '../query/read-plan.ts';
import { readEqualities } from '../query/readings.ts';
import { indexesOf, type Resource } from '../query/resource.ts';
import { adviceOnFields } from '../query/unknown-fields.ts';
import { listOf, namedObject, object, textOrNull, Type, wordOf } from '../../base/schema.ts';

/** The answer of /{resource}/values. */
const VALUES = namedObject('Values', 'a page of distinct values', {
  data: listOf(
    'the distinct values, ascending',
    object('a value', {
      value: Type.Unknown({ description: 'the value, as rows show it; null: null or missing' }),
      count: Type.Optional(
        Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
          description: 'the number of rows with this value; null: the time was up',
        }),
      ),
    }),
  ),
  page: object('how to continue', {
    limit: Type.Integer({ minimum: 1, description: 'the largest number of values' }),
    hasMore: Type.Boolean({ description: 'whether more values may follow' }),
    nextCursor: textOrNull('the cursor that continues after the last value'),
  }),
  omitted: Type.Integer({
    minimum: 0,
    description:
      'the number of stretches of one value or more that are left out between these, or behind the last: values that no filter can name, or that no command of MongoDB can carry',
  }),
  countsAre: Type.Optional(wordOf(['exact', 'partial'], 'partial: some counts are null')),
});

const MAX_PATH_BYTES = 1024;
const field = text('field', MAX_PATH_BYTES);
const count = documented(
  oneOf('count', ['none', 'exact']),
  'Add the number of rows of each value, as far as one second allows.',
  { fallback: 'none' },
);

const PROBLEMS = ['invalid-cursor', 'cursor-mismatch', 'sort-value-too-long', 'not-indexed'] as const;

/** GET of the distinct values of a field, by a chain that skips along an index from value to value. `example`: such a field. */
export function valuesRoute(
  docs: RouteDocs,
  whole: Resource,
  { maxLimit }: PageLimits,
  example: string | undefined,
): Route {
  const limit = limitParameter(maxLimit);
  const doc = 'The path whose distinct values are listed.';
  const shownField = documented(field, doc, example === undefined ? {} : { example });
  return {
    ...routeOf(docs, 'values', whole.form.closed ? PROBLEMS : ['conflicting-parameters', ...PROBLEMS]),
    cost: 'page',
    right: 'read',
    summary: `List the distinct values of a field of ${docs.noun.many}`,
    description:
      'Takes equalities as pages do. Answers within about a second, with fewer values than `limit` if need be: go on with `nextCursor` while `hasMore` is true.',
    query: [limit, cursorParameter, shownField, count, ...equalityParameters(whole.form)],
    produces: [JSON_TYPE],
    answers: { 200: jsonAnswer('The values', VALUES, ['Cache-Control']) },
    handler: async ({ request, query, client }) => {
      const resource = resourceFor(whole, client);
      const { signal } = request;
      const time = limitedTime();
      const most = limit.read(query) ?? DEFAULT_LIMIT;
      const cursor = cursorParameter.read(query);
      const asked = await readAsked(query, cursor, resource, signal);
      const collection = `${resource.name}/values`;
      const cursorOf: CursorOf = (value) => cursorThatFits(collection, asked.plan, withKey(value));
      const after = cursor === undefined ? null : valueBehind(cursor, collection, asked.plan);
      const options = { after, most, cursorOf };
      const found = asked.isEmpty
        ? { values: [], hasMore: false, omitted: 0 }
        : await listValues(resource.rows, asked.plan, options, time, signal);
      const counts =
        count.read(query) === 'exact'
          ? await countValues(found.values, asked, resource.rows, time, signal)
          : null;
      const data = found.values.map((value, n) =>
        valueToJson(value, counts ? (counts[n] ?? null) : undefined),
      );
      const last = found.values.at(-1) ?? after;
      const nextCursor = (last && cursorOf(last)) ?? null;
      const page = JSON.stringify({ limit: most, hasMore: found.hasMore, nextCursor });
      const are = counts ? `,"countsAre":"${counts.includes(null) ? 'partial' : 'exact'}"` : '';
      return json(200, `{"data":[${data.join(',')}],"page":${page},"omitted":${found.omitted}${are}}`, {
        'cache-control': 'private, no-cache',
      });
    },
  };
}

/** `count`: undefined where none was asked for, null where the time was up. */
function valueToJson(value: Bookmark, count: number | null | undefined): string {
  const shown = rowToJson(asKey(value)).slice('{"id":'.length, -1);
  return `{"value":${shown}${count === undefined ? '' : `,"count":${count}`}}`;
}

/** The parameters of a closed form that give a field a value. */
function equalityParameters({ closed = [] }: Form): readonly Parameter<unknown>[] {
  return closed.filter(({ to }) => splitName(to).operator === undefined).map(({ parameter }) => parameter);
}

/** What a query asks: the values of `plan.sort` behind the equalities. Rejects as the reading of a plan does. */
async function readAsked(
  query: Query,
  cursor: Token | undefined,
  resource: Resource,
  signal: AbortSignal,
): Promise<ValuesRequest & { readonly isEmpty: boolean }> {
  const path = fieldOf(field.read(query));
  const asked = withinScope(givenOf(query, resource), path, resource);
  const { given, where, isRefused } = asked;
  if (given.bounds.size > 0)
    throw conflict(shownPath([...given.bounds.keys()][0] ?? ''), 'values takes no ranges, only equalities.');
  if (given.among)
    throw conflict(inName(given.among.path), 'values takes one value of a field: ask for each by itself.');
  const indexes = await indexesOf(resource, signal);
  const named = [...where.map((one) => one.path), ...given.equals.keys()];
  const paths = named.filter((one) => one !== path);
  const index = indexFor(paths, path, indexes);
  if (!index || isRefused || paths.length < named.length) {
    const refusal = refusalFor(paths, path, indexes);
    const onFields = resource.scope ? '' : await adviceOnFields(refusal, indexes, resource, signal);
    throw notIndexed(refusal, indexes, resource, undefined, onFields);
  }
  const inOrder = index.keys.slice(0, paths.length).map((key) => key.path);
  const texts = inOrder.flatMap((one) => {
    const text = given.equals.get(one);
    return text === undefined ? [] : [[one, text] as const];
  });
  const options = { resource, types: cursor?.types ?? null, signal };
  const equals = await readEqualities(texts, index, options);
  return { plan: { index, sort: path, direction: 1, equals }, paths, indexes, isEmpty: asked.isEmpty };
}

/** The value that a cursor of this route continues after. AppErrors as rowBehind. */
function valueBehind(cursor: Token, collection: string, plan: Plan): Bookmark {
  const value = valueOf(rowBehind(cursor, collection, plan));
  if (value) return value;
  throw refusal(cursor, 'it names no value', 'Use a nextCursor unchanged.');
}

function fieldOf(given: string | undefined): string {
  if (given === undefined) throw invalid('field', 'field is required: the path whose values are listed.');
  const path = keyOr(given);
  if (path !== '_id') return path;
  throw invalid('field', 'Every row has its own id: field must be another path.');
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
