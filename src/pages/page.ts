import type { PageDocument } from '../serialize/schemas.ts';
import { serializers } from '../serialize/serializers.ts';
import type { Batch } from '../store/batch.ts';
import { planBehind } from '../store/chain.ts';
import type { Count } from '../store/store.ts';
import { encodeCursor } from './cursor.ts';
import type { PageQuery } from './query.ts';

/** What a client needs to go on from a page that ended so. An empty page keeps the cursor it was asked with, for pollers. */
export function pageInfo(
  { collection, plan, limit, start }: PageQuery,
  end: Pick<Batch, 'last' | 'more' | 'identity'>,
  count: Count | null,
): PageDocument {
  const kept = start.style === 'cursor' ? start.cursor : null;
  return {
    limit,
    hasMore: end.more,
    nextCursor: end.last ? encodeCursor(collection, planBehind(plan, end), end.last) : kept,
    ...(start.style === 'offset' && { offset: start.offset }),
    ...(start.style === 'page' && { page: start.page }),
    ...(count && { total: count.rows, totalIs: count.is }),
  };
}

/** A longer cursor stands in the body only: heads are bounded, by this server's engines and by proxies. Characters. */
const LONGEST_LINKED = 2048;

/** What stands around a page's rows. */
export const PAGE_HEAD = '{"data":[';

export function pageTail(info: PageDocument): string {
  return `],"page":${serializers.page(info)}}`;
}

/**
 * Link header (RFC 8288) of a page: first; next while there is more; prev for offset and page. References are relative
 * to the request's path. `maxOffset` is where counting ends: behind it next goes on by cursor.
 */
export function pageLinks(
  path: string,
  asked: URLSearchParams,
  query: PageQuery,
  info: PageDocument,
  maxOffset: number,
): string {
  const link = (rel: string, position: Record<string, string | number>) => {
    const parameters = new URLSearchParams(asked);
    for (const name of ['offset', 'page', 'cursor']) parameters.delete(name);
    for (const [name, value] of Object.entries(position)) parameters.set(name, String(value));
    const search = parameters.toString();
    return `<${path}${search && `?${search}`}>; rel="${rel}"`;
  };
  const { start, limit, skip } = query;
  const links = [
    link('first', start.style === 'offset' ? { offset: 0 } : start.style === 'page' ? { page: 1 } : {}),
  ];
  if (start.style === 'offset' && start.offset > 0)
    links.push(link('prev', { offset: Math.max(0, start.offset - limit) }));
  if (start.style === 'page' && start.page > 1) links.push(link('prev', { page: start.page - 1 }));
  if (info.hasMore && info.nextCursor !== null) {
    const counted = skip + limit <= maxOffset;
    if (counted && start.style === 'offset') links.push(link('next', { offset: start.offset + limit }));
    else if (counted && start.style === 'page') links.push(link('next', { page: start.page + 1 }));
    else if (info.nextCursor.length <= LONGEST_LINKED) links.push(link('next', { cursor: info.nextCursor }));
  }
  return links.join(', ');
}
