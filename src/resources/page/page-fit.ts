import { AppError } from '../../errors.ts';
import { keyToJson } from '../../rows/row-json.ts';
import { headEndingWith, lastBookmark, rowsOf, type Batch } from '../../store/batch.ts';
import { bookmarkOf, type Bookmark } from '../../store/bookmark.ts';
import { ALWAYS_FITS_BYTES, cursorThatFits, isPlace } from '../token/cursor.ts';
import type { PageQuery } from './parameters.ts';

/** Where a page ends. */
export type PageEnd = Pick<Batch, 'last' | 'more' | 'identity'>;

/** The number of characters of an id that a problem shows. */
const SHOWN_ID = 80;

/** The cursor that continues after a row of the page. Undefined when the server would accept none. */
export function cursorBehind(
  { collection, plan }: PageQuery,
  { identity }: Pick<Batch, 'identity'>,
  last: Bookmark,
): string | undefined {
  return cursorThatFits(collection, plan, last, identity);
}

/**
 * The rows of a batch that its page contains. These are all rows, unless no cursor can continue after the last one. The
 * page then ends with the last row that has a cursor. Null when no row has one. Pages by offset and by number need no
 * cursor.
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
