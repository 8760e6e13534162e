import { storeUnavailable } from '../errors.ts';
import { documented, integer, type Parameter } from '../input/parameter.ts';
import type { Query } from '../input/query.ts';
import { json } from '../http/reply.ts';
import { JSON_TYPE, jsonAnswer, STORE_PROBLEMS, type Route } from '../http/route.ts';
import { named, Type } from '../schema.ts';
import { serializerOf } from '../rows/serializers.ts';
import type { ItemStore } from '../store/store.ts';
import { encodePart, isBoundOfPart } from './part.ts';
import { atParameter, consistencyParameter, timeOf } from './point-in-time.ts';
import { readStreamQuery, STREAM_PARAMETERS, STREAM_QUERY } from './stream-query.ts';

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
const NOT_SHARED = ['part', 'cursor', 'after', 'limit', 'sort', 'min_price', 'max_price'];
const TIME = [consistencyParameter.name, atParameter.name];
const SHARED = STREAM_PARAMETERS.filter((name) => !NOT_SHARED.includes(name) && !TIME.includes(name));

const PARTITIONS_QUERY: readonly Parameter<unknown>[] = [
  parts,
  ...STREAM_QUERY.filter(({ name }) => !NOT_SHARED.includes(name)),
];

const PARTITIONS = named(
  'Partitions',
  Type.Object(
    {
      partitions: Type.Array(
        Type.Object(
          { url: Type.String({ description: 'the URL of the stream of this part' }) },
          { additionalProperties: false, description: 'a part: a range of ids' },
        ),
        {
          minItems: 1,
          description: 'the parts, in order of id',
        },
      ),
    },
    {
      additionalProperties: false,
      description: 'disjoint ranges of ids that together cover all matching items',
    },
  ),
);
const serialize = serializerOf(PARTITIONS);

/**
 * GET /items/partitions: disjoint ranges of ids that together are the set, each with the URL of its stream. The URLs
 * carry over the filter and the form of this request, and all name the same point in time. There are fewer than `n`
 * parts when there are not that many items.
 */
export function listPartitions(items: ItemStore): Route {
  return {
    method: 'GET',
    path: '/items/partitions',
    access: 'keyed',
    cost: 'page',
    id: 'listPartitions',
    tag: 'Items',
    summary: 'List disjoint parts of the collection, each with the URL of its stream',
    description:
      'Lets a client read over several connections in parallel. The URLs of the streams repeat the filter and format of this request.',
    query: PARTITIONS_QUERY,
    produces: [JSON_TYPE],
    answers: {
      200: jsonAnswer('The parts, in order of id', PARTITIONS, ['Cache-Control'], {
        request: '/items/partitions?n=2&fields=price',
        answer: {
          partitions: [
            { url: '/items/stream?part=ARQAAAACdG8ABwAAAGQyNjk3MQAAVyW-iA&fields=price' },
            { url: '/items/stream?part=ARYAAAACZnJvbQAHAAAAZDI2OTcxAADvOAW_&fields=price' },
          ],
        },
      }),
    },
    problems: ['conflicting-parameters', 'snapshot-unsupported', 'snapshot-expired', ...STORE_PROBLEMS],
    handler: async ({ request, query }) => {
      const { plan, time } = readStreamQuery(query);
      const at = await timeOf(time, items, request.signal);
      const identity = await items.identity(request.signal);
      const found = await items.split(plan, parts.read(query) ?? DEFAULT_PARTS, request.signal);
      if ((await items.identity(request.signal)) !== identity)
        throw storeUnavailable(new Error('the collection was replaced while it was split into parts'));
      const bounds = found.filter(isBoundOfPart); // no part can carry other bounds
      const partitions = [undefined, ...bounds].map((from, n) => {
        const to = bounds[n];
        const part = encodePart({ ...(from && { from }), ...(to && { to }) }, identity);
        const search = new URLSearchParams([['part', part], ...shared(query)]);
        if (at !== undefined) search.set(atParameter.name, String(at));
        return { url: `/items/stream?${search.toString()}` };
      });
      return json(200, serialize({ partitions }), { 'cache-control': 'no-store' });
    },
  };
}

function shared(query: Query): [string, string][] {
  return [...query].filter(([name]) => SHARED.includes(name));
}
