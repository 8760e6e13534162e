import { storeUnavailable } from '../errors.ts';
import { mediaTypeNegotiator } from '../http/negotiate.ts';
import { documented, integer, type Parameter } from '../http/parameter.ts';
import { parseQuery, type Query } from '../http/query.ts';
import { json } from '../http/reply.ts';
import type { Handler } from '../http/router.ts';
import { serializers } from '../serialize/serializers.ts';
import type { ItemStore } from '../store/store.ts';
import { encodePart, isBoundOfPart } from './part.ts';
import { atParameter, consistencyParameter, timeOf } from './point-in-time.ts';
import { readStreamQuery, STREAM_PARAMETERS, STREAM_QUERY } from './stream-query.ts';

const DEFAULT_PARTS = 8;
const parts = documented(integer('n', 1, 64), 'How many parts; fewer come when there are not so many rows.', {
  example: 2,
  fallback: DEFAULT_PARTS,
});
/** What belongs to one stream and not to all parts; a part is in order of id. */
const NOT_SHARED = ['part', 'cursor', 'after', 'limit', 'sort', 'min_price', 'max_price'];
const TIME = [consistencyParameter.name, atParameter.name];
const SHARED = STREAM_PARAMETERS.filter((name) => !NOT_SHARED.includes(name) && !TIME.includes(name));

/** What GET /items/partitions takes. */
export const PARTITIONS_QUERY: readonly Parameter<unknown>[] = [
  parts,
  ...STREAM_QUERY.filter(({ name }) => !NOT_SHARED.includes(name)),
];
const NAMES = PARTITIONS_QUERY.map(({ name }) => name);

/**
 * GET /items/partitions: disjoint ranges of ids that together are the set, each with its stream, which takes over the
 * filter and the form that were asked for here, and all the same point in time. Fewer than `n` when there are not so many items.
 */
export function getPartitions(items: ItemStore): Handler {
  const acceptable = mediaTypeNegotiator(['application/json']);
  return async (request) => {
    acceptable(request);
    const query = parseQuery(request.query, NAMES);
    const { plan, time } = readStreamQuery(query);
    const at = await timeOf(time, items, request.signal);
    const identity = await items.identity(request.signal);
    const found = await items.split(plan, parts.read(query) ?? DEFAULT_PARTS, request.signal);
    if ((await items.identity(request.signal)) !== identity)
      throw storeUnavailable(new Error('the collection was replaced while it was split'));
    const bounds = found.filter(isBoundOfPart); // others no part can carry
    const partitions = [undefined, ...bounds].map((from, n) => {
      const to = bounds[n];
      const part = encodePart({ ...(from && { from }), ...(to && { to }) }, identity);
      const search = new URLSearchParams([['part', part], ...shared(query)]);
      if (at !== undefined) search.set(atParameter.name, String(at));
      return { url: `/items/stream?${search.toString()}` };
    });
    return json(200, serializers.partitions({ partitions }), { 'cache-control': 'no-store' });
  };
}

function shared(query: Query): [string, string][] {
  return [...query].filter(([name]) => SHARED.includes(name));
}
