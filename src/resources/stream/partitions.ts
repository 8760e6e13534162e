import { storeUnavailable } from '../../base/errors.ts';
import { documented, integer } from '../../input/parameter.ts';
import type { Reply } from '../../engine/edge.ts';
import { json } from '../../http/reply.ts';
import { valueTypes } from '../token/cursor.ts';
import { JSON_TYPE, jsonAnswer, type Input, type Route } from '../../http/route.ts';
import { namedObject, object, text, Type } from '../../base/schema.ts';
import { serializerOf } from '../../rows/serializers.ts';
import type { Identity, Plan, Collection } from '../../store/store.ts';
import { formatOf, formatParameter, FORMATS } from './formats/list.ts';
import { encodePart, isBoundOfPart } from './part.ts';
import { atParameter, consistencyParameter, timeOf } from './point-in-time.ts';
import { assertDivisible, readStreamQuery, streamParameters } from './parameters.ts';
import { resourceFor } from '../query/scope.ts';
import { readPlan } from '../query/read-plan.ts';
import type { Resource } from '../query/resource.ts';
import { routeOf, type RouteDocs } from '../route-docs.ts';
import { changesFrom, headersOf, type ChangesStart } from '../token/feed-cursor.ts';

const DEFAULT_PARTS = 8;
const parts = documented(
  integer('n', 1, 64),
  'The number of parts. The server returns fewer when there are too few rows.',
  {
    example: 2,
    fallback: DEFAULT_PARTS,
  },
);
/** Parameters of one stream that its parts do not share. A part is in order of id, so it has no other sort. */
const NOT_SHARED = ['part', 'cursor', 'after', 'limit'];
/** Parameters of this request that its streams do not repeat as they are. */
const OWN: readonly string[] = [parts.name, consistencyParameter.name, atParameter.name];

const PART = object('a part: a range of ids', { url: text('the URL of the stream of this part') });
const PARTITIONS = namedObject('Partitions', 'disjoint ranges of ids that together cover all matching rows', {
  partitions: Type.Array(PART, { minItems: 1, description: 'the parts, in order of id' }),
});
const serialize = serializerOf(PARTITIONS);

/**
 * GET of the partitions: disjoint ranges of ids that together are the set, each with the URL of its stream. The URLs
 * have the filter and form of this request and one point in time. Few rows may make fewer parts than `n`.
 */
export function partitionsRoute(docs: RouteDocs, whole: Resource): Route {
  const ofStreams = streamParameters(docs.unordered ?? []);
  const query = [parts, ...ofStreams.filter(({ name }) => !NOT_SHARED.includes(name))];
  return {
    ...routeOf(docs, 'partitions', ['conflicting-parameters', 'snapshot-unsupported', 'snapshot-expired']),
    cost: 'page',
    right: 'stream',
    summary: 'List disjoint parts of the collection, each with the URL of its stream',
    description:
      'Lets a client read over several connections in parallel. The URLs of the streams repeat the filter and format of this request.',
    query,
    produces: [JSON_TYPE],
    answers: {
      200: {
        ...jsonAnswer('The parts, in order of id', PARTITIONS, ['Cache-Control'], docs.examples.partitions),
        sometimes: ['Changes-From'],
      },
    },
    handler: (input) => answerPartitions(input, docs.path, whole),
  };
}

async function answerPartitions(
  { request, query: given, client }: Input,
  path: string,
  whole: Resource,
): Promise<Reply> {
  const { signal } = request;
  const resource = resourceFor(whole, client);
  const { rows } = resource;
  const { time, fields } = readStreamQuery(given, resource);
  const plan = await readPlan(given, resource, signal, undefined, true);
  assertDivisible(plan, 'sort');
  const at = await timeOf(time, rows, signal);
  const most = parts.read(given) ?? DEFAULT_PARTS;
  const place = (identity: Identity | undefined) => {
    const time = at !== undefined && { at };
    const bound = { ...plan, ...time, ...(identity !== undefined && { identity }) };
    return changesFrom(resource, bound, signal);
  };
  const cutOnce = () => cutIn(rows, plan, most, place, signal);
  // The first try may find that the collection has been replaced since the last request.
  const cut = (await cutOnce()) ?? (await cutOnce());
  if (!cut) throw storeUnavailable(new Error('the collection was replaced while it was split into parts'));
  const { identity, changes, found } = cut;
  const since = changes?.bounds.since;
  const head = {
    types: valueTypes(plan),
    ...(since !== undefined && { since }),
    ...(identity !== undefined && { identity }),
  };
  const format = formatOf(formatParameter.read(given) ?? FORMATS[0].name);
  const ofForm = (await format.ofParts?.(given, { resource, plan, fields, signal })) ?? [];
  const shared = new URLSearchParams([...given].filter(([name]) => !OWN.includes(name)));
  if (at !== undefined) shared.set(atParameter.name, String(at));
  for (const [name, text] of ofForm) shared.set(name, text);
  const bounds = found.filter(isBoundOfPart); // no part can carry other bounds
  const partitions = [undefined, ...bounds].map((from, n) => {
    const to = bounds[n];
    const part = encodePart({ ...(from && { from }), ...(to && { to }) }, head);
    const search = new URLSearchParams([['part', part], ...shared]);
    return { url: `${request.notes.mount}${path}/stream?${search.toString()}` };
  });
  return json(200, serialize({ partitions }), { 'cache-control': 'no-store', ...headersOf(changes) });
}

/** The ids at which parts begin, their collection, and where its changes follow. Null: it was replaced meanwhile. */
async function cutIn(
  rows: Collection,
  plan: Plan,
  most: number,
  place: (identity: Identity | undefined) => Promise<ChangesStart | null>,
  signal: AbortSignal,
) {
  const { identity } = await rows.describe(signal);
  const changes = await place(identity);
  const found = await rows.split(plan, most, signal);
  return (await rows.describe(signal)).identity === identity ? { identity, changes, found } : null;
}
