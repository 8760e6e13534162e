import { Refused } from './failure.ts';
import { jsonOf, type Asking, type Source } from './http.ts';

/** What is asked beside the stream itself. */

/** Parameters that say which rows there are; the others say where a stream begins and what it looks like. */
const CHOOSING = ['category', 'min_price', 'max_price'];

/**
 * The URLs of at most `n` disjoint parts that together, in their order, are the stream's rows. Refused when there are no parts of
 * such a stream.
 */
export async function partsOf(source: Source, stream: URL, n: number, asking: Asking): Promise<string[]> {
  const url = sibling(stream, '/partitions');
  url.searchParams.delete('sort'); // it is in order of id, what parts are anyway
  url.searchParams.set('n', String(n));
  const { partitions } = Object(await jsonOf(source, url, asking)) as { partitions?: unknown };
  const found = urlsOf(partitions, stream);
  if (!found || found.length === 0 || found.length > n)
    throw new Refused(`${url.pathname} answers something else than 1 to ${n} partitions`);
  // Behind a proxy the stream may lie under another path than the server knows.
  return found.map((part) => {
    const next = new URL(stream);
    next.search = part.search;
    return next.href;
  });
}

/** Null when one of them is no partition. */
function urlsOf(partitions: unknown, stream: URL): URL[] | null {
  if (!Array.isArray(partitions)) return null;
  const urls: URL[] = [];
  for (const partition of partitions as unknown[]) {
    const { url } = Object(partition) as { url?: unknown };
    if (typeof url !== 'string' || !URL.canParse(url, stream.href)) return null;
    urls.push(new URL(url, stream));
  }
  return urls;
}

/** About how many rows a stream has; null when the server cannot tell. */
export async function estimateOf(source: Source, stream: URL, asking: Asking): Promise<number | null> {
  const url = sibling(stream, '');
  url.search = '';
  for (const name of CHOOSING) {
    const value = stream.searchParams.get(name);
    if (value !== null) url.searchParams.set(name, value);
  }
  url.searchParams.set('fields', 'id');
  url.searchParams.set('limit', '1');
  url.searchParams.set('count', 'estimated');
  const { page } = Object(await jsonOf(source, url, asking)) as {
    page?: { total?: unknown; totalIs?: unknown };
  };
  const total = page?.total;
  if (typeof total !== 'number' || !(total >= 0) || page?.totalIs === 'atLeast') return null;
  return Math.min(total, Number(stream.searchParams.get('limit') ?? Infinity));
}

/** Another resource of the same collection: `/items/stream` and `/partitions` make `/items/partitions`. */
function sibling(stream: URL, name: string): URL {
  const url = new URL(stream);
  url.pathname = url.pathname.replace(/\/stream$/, name);
  return url;
}
