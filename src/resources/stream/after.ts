import { AppError } from '../../errors.ts';
import { documented, invalid, text } from '../../input/parameter.ts';
import { quote } from '../../input/query.ts';
import { MAX_CURSOR_BYTES } from '../token/cursor.ts';
import { keyToJson, rowToJson } from '../../rows/row-json.ts';
import { documentOf } from '../../store/batch.ts';
import { bookmarkOf, KEY, keyOf, makeBookmark, type Bookmark } from '../../store/bookmark.ts';
import type { Collection, Plan } from '../../store/store.ts';
import { endRank, type IdReading, type ReadId } from '../row/id.ts';
import { rowShownAs } from '../row/row.ts';
import type { AfterForm } from '../row/source.ts';

/** A value of a sort may be as long as a cursor can carry it. An id has a limit of its own: see id.ts. */
export const afterParameter = documented(
  text('after', MAX_CURSOR_BYTES),
  'Continue after the row with this id, as its JSON shows it, or in another order with its value and id: `value,id` of items, `[value,id]` of other resources. The row may have been deleted or changed since.',
);

interface Options {
  readonly rows: Collection;
  readonly after: AfterForm;
  readonly readId: ReadId;
  readonly signal: AbortSignal;
}

/**
 * Resolves to the bookmark that `after` stands for. `after` names a row as its JSON shows it: by its id in id order,
 * else by the value of the sort and the id. The row may no longer exist. A text can be ids of several types, and a
 * number can have several types that differ (0.1 as a double and as a decimal). The row that exists then decides.
 * Without one, a text is taken only if it can be an id of one type that this collection may have. AppError
 * `invalid-parameter` when no row can be named so, or when its place is not known.
 */
export async function readAfter(given: string, plan: Plan, options: Options): Promise<Bookmark> {
  const { rows, after, signal } = options;
  const named = plan.sort === KEY ? { id: given, value: null } : after.split(given);
  if (!named) throw refused(plan, given, after);
  const { id, value } = named;
  const readings = await options.readId(id, signal);
  const found = await rowShownAs(id, readings, rows, signal);
  if (!found) {
    const place = await placeOf(readings, rows, signal);
    if (!place) throw refused(plan, given, after);
    if (value === null) return place;
    return bookmarkAt(plan, valueOf(value, await firstValue(plan, options), plan, given, after), place);
  }
  try {
    const bookmark = bookmarkOf(documentOf(found.batch), plan);
    if (value === null || after.isShown(shownValue(bookmark, plan), value)) return bookmark;
    const like = keyOf(bookmark)[plan.sort];
    return bookmarkAt(plan, valueOf(value, like, plan, given, after), found.reading.id); // it has changed since
  } finally {
    found.batch.release();
  }
}

/** The lowest id of these readings, if the collection may have ids of one of their types only. Null: it is not known. */
async function placeOf(
  readings: readonly IdReading[],
  rows: Collection,
  signal: AbortSignal,
): Promise<Bookmark | null> {
  const [first, last] = [await endRank(rows, 1, signal), await endRank(rows, -1, signal)];
  const possible = readings.filter(
    ({ rank }) => first === null || last === null || (rank >= first && rank <= last),
  );
  const [only] = possible;
  const isOnly = possible.every(({ rank, isPlace }) => isPlace && rank === only?.rank);
  return only && (isOnly || first === null) ? only.id : null;
}

/** The value of the sort that a text stands for. AppError `invalid-parameter` when it is none like `like`. */
function valueOf(text: string, like: unknown, plan: Plan, given: string, after: AfterForm): unknown {
  const value = after.parse(text, like);
  if (value === undefined) throw refused(plan, given, after);
  return value;
}

/** The value that orders a row, as its JSON shows it. */
function shownValue(bookmark: Bookmark, { sort }: Plan): string {
  const beforeValue = keyToJson(bookmark).length - 1 + `,${JSON.stringify(sort)}:`.length;
  return rowToJson(bookmark).slice(beforeValue, -1);
}

function bookmarkAt({ sort }: Plan, value: unknown, id: Bookmark): Bookmark {
  return makeBookmark({ [sort]: value, _id: keyOf(id)._id });
}

/** The value of the sort in the plan's first row: the values of one collection are mostly of one type. */
async function firstValue(plan: Plan, { rows, signal }: Options): Promise<unknown> {
  const batch = await rows.read(plan, {}, { rows: 1, bytes: 1 }, signal);
  try {
    return batch.last ? keyOf(batch.last)[plan.sort] : null;
  } finally {
    batch.release();
  }
}

function refused(plan: Plan, given: string, after: AfterForm): AppError {
  const expected =
    plan.sort === KEY
      ? 'the id of a row as its JSON shows it, of a type that ids of this collection have'
      : after.expected;
  return invalid('after', `after must be ${expected}; got ${quote(given)}.`);
}
