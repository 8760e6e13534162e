import type { AppError } from '../../errors.ts';
import { documented, invalid, text } from '../../input/parameter.ts';
import { quote } from '../../input/query.ts';
import { MAX_CURSOR_BYTES } from '../token/cursor.ts';
import { keyToJson, rowToJson } from '../../rows/row-json.ts';
import { documentOf } from '../../store/batch.ts';
import { bookmarkOf, KEY, keyOf, makeBookmark, type Bookmark } from '../../store/bookmark.ts';
import type { Collection, Plan } from '../../store/store.ts';
import { endRank, type IdReading } from '../row/id.ts';
import { rowShownAs } from '../row/row.ts';
import type { RowSource } from '../row-source.ts';

/** A value of a sort may be as long as a cursor can carry it. An id has a limit of its own: see id.ts. */
export const afterParameter = documented(
  text('after', MAX_CURSOR_BYTES),
  'Continue after the row with this id, as its JSON shows it, or in another order with its value and id: `value,id`, or `[value,id]`. The row may have been deleted or changed since.',
);

/** A row as clients name it: by the value that orders it, if rows are not ordered by id, and by its id. */
interface Named {
  readonly id: string;
  readonly value: string | null;
}

/**
 * Resolves to the bookmark that `after` stands for. `after` names a row as its JSON shows it: by its id in id order,
 * else by the value of the sort and the id. The row may no longer exist. A text can be ids of several types, and a
 * number can have several types that differ (0.1 as a double and as a decimal). The row that exists then decides.
 * Without one, a text is taken only if it can be an id of one type that this collection may have. AppError
 * `invalid-parameter` when no row can be named so, or when its place is not known.
 */
export async function readAfter(
  given: string,
  plan: Plan,
  { rows, readShown, readId }: Pick<RowSource, 'rows' | 'readShown' | 'readId'>,
  signal: AbortSignal,
): Promise<Bookmark> {
  const named = plan.sort === KEY ? { id: given, value: null } : namedBy(given);
  if (!named) throw refused(plan, given);
  const { id, value } = named;
  const valueLike = (like: unknown) => {
    const read = readShown(value ?? '', plan.sort, like);
    if (read === undefined) throw refused(plan, given);
    return read;
  };
  const readings = await readId(id, signal);
  const found = await rowShownAs(id, readings, rows, signal);
  if (!found) {
    const place = await placeOf(readings, rows, signal);
    if (!place) throw refused(plan, given);
    if (value === null) return place;
    return bookmarkAt(plan, valueLike(await firstValue(plan, rows, signal)), place);
  }
  try {
    const bookmark = bookmarkOf(documentOf(found.batch), plan);
    if (value === null || [value, JSON.stringify(value)].includes(shownValue(bookmark, plan)))
      return bookmark;
    return bookmarkAt(plan, valueLike(keyOf(bookmark)[plan.sort]), found.reading.id); // it has changed since
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

/** The value that orders a row, as its JSON shows it. */
function shownValue(bookmark: Bookmark, { sort }: Plan): string {
  const beforeValue = keyToJson(bookmark).length - 1 + `,${JSON.stringify(sort)}:`.length;
  return rowToJson(bookmark).slice(beforeValue, -1);
}

function bookmarkAt({ sort }: Plan, value: unknown, id: Bookmark): Bookmark {
  return makeBookmark({ [sort]: value, _id: keyOf(id)._id });
}

/** The value of the sort in the plan's first row: the values of one collection are mostly of one type. */
async function firstValue(plan: Plan, rows: Collection, signal: AbortSignal): Promise<unknown> {
  const batch = await rows.read(plan, {}, { rows: 1, bytes: 1 }, signal);
  try {
    return batch.last ? keyOf(batch.last)[plan.sort] : null;
  } finally {
    batch.release();
  }
}

/** The value and the id in `VALUE,id`, or in the JSON array `["VALUE","id"]`, whose value may have commas. */
function namedBy(given: string): Named | null {
  return given.startsWith('[') ? arrayOf(given) : pairOf(given);
}

function pairOf(given: string): Named | null {
  const comma = given.indexOf(',');
  if (comma < 0) return null;
  return named(given.slice(0, comma), given.slice(comma + 1));
}

function arrayOf(given: string): Named | null {
  let read: unknown;
  try {
    read = JSON.parse(given);
  } catch (error) {
    if (error instanceof SyntaxError) return pairOf(given);
    throw error;
  }
  const [value, id, more] = read as unknown[];
  if (more !== undefined) return null;
  const [valueText, idText] = [value, id].map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
  if (valueText === undefined || idText === undefined) return null;
  // JavaScript's numbers lose digits. A number is taken only if it is written as JavaScript writes it.
  if (typeof value === 'number' && !given.replace(/\s/g, '').startsWith(`[${valueText},`)) return null;
  return named(valueText, idText, value === 'null');
}

/** AppError `invalid-parameter` for a value that shows as null: it may be null, missing, NaN or infinite. */
function named(value: string, id: string, isText = false): Named {
  if (value === 'null' && !isText)
    throw invalid(
      'after',
      'after cannot name a row whose sort value shows as null, which stands for several values. Use a cursor.',
    );
  return { value, id };
}

function refused({ sort }: Plan, given: string): AppError {
  const expected =
    sort === KEY
      ? 'the id of a row as its JSON shows it, of a type that ids of this collection have'
      : 'the value of the sort and the id of a row as its JSON shows them: separated by a comma, or as a JSON array of two strings';
  return invalid('after', `after must be ${expected}; got ${quote(given)}.`);
}
