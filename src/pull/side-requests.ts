import { getJson } from './http.ts';
import type { RequestOptions } from './proved-rows.ts';
import { Refusal } from './retry.ts';

/** Parameters that say where a stream begins and how it is written. All others select the rows. */
const OF_STREAMS = [
  'cursor',
  'after',
  'part',
  'limit',
  'fields',
  'format',
  'checkpoints',
  'consistency',
  'at',
];

/** The URLs of at most `n` disjoint parts, which in their order are the rows of the stream. */
export async function getParts(stream: URL, n: number, options: RequestOptions): Promise<string[]> {
  const url = sibling(stream, '/partitions');
  url.searchParams.delete('sort'); // the sort is by id, as in every part
  url.searchParams.set('n', String(n));
  const { partitions } = Object(await getJson(url, options)) as { partitions?: unknown };
  const found = Array.isArray(partitions) ? partitions.map((one) => urlOf(one, stream)) : [];
  if (found.length === 0 || found.length > n || found.includes(null))
    throw new Refusal(`the answer of ${url.pathname} does not hold 1 to ${n} partitions`);
  // Behind a proxy, the stream may have another path than the server knows.
  return found.map((part) => {
    const next = new URL(stream);
    next.search = part?.search ?? '';
    return next.href;
  });
}

/** null when it is not a partition. */
function urlOf(partition: unknown, stream: URL): URL | null {
  const { url } = Object(partition) as { url?: unknown };
  return typeof url === 'string' && URL.canParse(url, stream.href) ? new URL(url, stream) : null;
}

/** The approximate number of rows of a stream. null when the server does not know. */
export async function getEstimate(stream: URL, options: RequestOptions): Promise<number | null> {
  const url = sibling(stream, '');
  for (const name of OF_STREAMS) url.searchParams.delete(name);
  url.searchParams.set('fields', 'id');
  url.searchParams.set('limit', '1');
  url.searchParams.set('count', 'estimated');
  const { page } = Object(await getJson(url, options)) as {
    page?: { total?: unknown; totalIs?: unknown };
  };
  const total = page?.total;
  if (typeof total !== 'number' || !(total >= 0) || page?.totalIs === 'atLeast') return null;
  return Math.min(total, Number(stream.searchParams.get('limit') ?? Infinity));
}

/** `/orders/stream` and `/partitions` make `/orders/partitions`. */
function sibling(stream: URL, name: string): URL {
  const url = new URL(stream);
  url.pathname = url.pathname.replace(/\/stream$/, name);
  return url;
}
