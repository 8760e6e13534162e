import { AppError } from '../../base/errors.ts';
import { keyToJson } from '../../rows/row-json.ts';
import { headEndingWith, lastBookmark, rowsOf, type Batch } from '../../store/batch.ts';
import { ALWAYS_FITS_BYTES, cursorThatFits, isPlace } from '../token/cursor.ts';
import { count, namedObject, text, textOrNull, Type, wordOf, type Static } from '../../base/schema.ts';
import { serializerOf } from '../../rows/serializers.ts';
import { bookmarkOf, type Bookmark } from '../../store/bookmark.ts';
import type { Count } from '../../store/store.ts';
import { unexpectedOrder } from '../query/grammar.ts';
import type { PageQuery } from './parameters.ts';

export const PAGE = namedObject('Page', 'the position of the page, and how to continue', {
  limit: Type.Integer({ minimum: 1, description: 'the largest number of rows on the page' }),
  hasMore: Type.Boolean({ description: 'whether more rows follow this page; exact' }),
  nextCursor: textOrNull(
    'the cursor that continues after the last row; null: the page is empty and no cursor was given, or the key of the last row is too long for a cursor',
  ),
  sort: Type.Optional(text('the order, if the request named none and it is not that of ids')),
  offset: Type.Optional(count('the offset of the request')),
  page: Type.Optional(Type.Integer({ minimum: 1, description: 'the page of the request' })),
  total: Type.Optional(count('the number of matching rows, if `count` requests it')),
  totalIs: Type.Optional(wordOf(['exact', 'estimated', 'atLeast'], 'the accuracy of `total`')),
});
type PageDocument = Readonly<Static<typeof PAGE>>;
const serialize = serializerOf(PAGE);

export type PageEnd = Pick<Batch, 'last' | 'more' | 'identity'>;

/** The number of characters of an id that a problem shows. */
const SHOWN_ID = 80;

/** The cursor that continues after a row of the page. Undefined when the server would accept none. */
function cursorBehind(
  { collection, plan }: PageQuery,
  { identity }: Pick<Batch, 'identity'>,
  last: Bookmark,
): string | undefined {
  return cursorThatFits(collection, plan, last, identity);
}

/**
 * The rows of a batch that its page has: up to the last row that a cursor can continue after, or all for a page by
 * offset or number, which needs none. Null when no row has a cursor.
 */
export function fittingRows(batch: Batch, query: PageQuery): Batch | null {
  const counts = query.offset !== undefined || query.page !== undefined;
  const hasCursor = (bookmark: Bookmark) =>
    (isPlace(bookmark) && bookmark.length <= ALWAYS_FITS_BYTES) ||
    cursorBehind(query, batch, bookmark) !== undefined;
  if (counts || !batch.more || !batch.last || hasCursor(batch.last)) return batch;
  const head = headEndingWith(batch, (row) => hasCursor(bookmarkOf(row, query.plan)));
  return head && { ...head, last: lastBookmark(head, query.plan) };
}

/** The error of a page that cannot end at any of these rows. */
export function sortValueTooLong(batch: Batch): AppError {
  const [first] = rowsOf(batch);
  const id = first ? keyToJson(first).slice(0, SHOWN_ID) : '';
  return new AppError(
    'sort-value-too-long',
    `No cursor can continue after these rows, the first of which is ${id}...: their ids or sort values are too long, or are regular expressions. A larger limit may help. Pages by offset and the stream return these rows.`,
  );
}

/** What continues after a page with this end. An empty page returns the cursor of its request, for pollers. */
export function pageInfo(query: PageQuery, end: PageEnd, total: Count | null): PageDocument {
  const { limit, offset, page, cursor, plan } = query;
  const order = unexpectedOrder(plan);
  return {
    limit,
    hasMore: end.more,
    nextCursor: (end.last ? cursorBehind(query, end, end.last) : cursor?.text) ?? null,
    ...(query.isUnordered && order !== undefined && { sort: order }),
    ...(offset !== undefined && { offset }),
    ...(page !== undefined && { page }),
    ...(total && { total: total.rows, totalIs: total.is }),
  };
}

/** Characters. A longer cursor is only in the body, because engines and proxies limit the size of a head. */
const LONGEST_LINKED = 2048;
/** The most characters of a Link header, for the same reason. */
const LONGEST_LINKS = 6000;

/** The text before a page's rows; `pageTail` is the text after them. */
export const PAGE_HEAD = '{"data":[';

export function pageTail(info: PageDocument): string {
  return `],"page":${serialize(info)}}`;
}

/**
 * The Link header (RFC 8288) of a page: `first`, `next` while there is more, `prev` for offset and page. References are
 * paths of this server, of which `path` is that of the page. Beyond `maxOffset` rows, `next` continues by cursor. Links that would make the header
 * too long are left out, `first` before `prev` and `next`; empty when none fits.
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
  const { offset, page, limit, skip } = query;
  const links = [link('first', offset !== undefined ? { offset: 0 } : page !== undefined ? { page: 1 } : {})];
  if (offset !== undefined && offset > 0) links.push(link('prev', { offset: Math.max(0, offset - limit) }));
  if (page !== undefined && page > 1) links.push(link('prev', { page: page - 1 }));
  if (info.hasMore) {
    const counted = skip + limit <= maxOffset;
    if (counted && offset !== undefined) links.push(link('next', { offset: offset + limit }));
    else if (counted && page !== undefined) links.push(link('next', { page: page + 1 }));
    else if (info.nextCursor !== null && info.nextCursor.length <= LONGEST_LINKED)
      links.push(link('next', { cursor: info.nextCursor }));
  }
  return fitting(links).join(', ');
}

/** The links that fit into one header, the last ones first. */
function fitting(links: readonly string[]): readonly string[] {
  let room = LONGEST_LINKS;
  const kept = links.toReversed().filter((link) => {
    if (link.length > room) return false;
    room -= link.length;
    return true;
  });
  return kept.reverse();
}
