import type { AppError } from '../../errors.ts';
import { documented, invalid, text } from '../../input/parameter.ts';
import { quote } from '../../input/query.ts';
import { MAX_CURSOR_BYTES } from '../token/cursor.ts';
import { keyToJson, rowToJson } from '../../rows/row-json.ts';
import { documentOf, orRelease } from '../../store/batch.ts';
import { bookmarkOf, KEY, keyOf, makeBookmark, type Bookmark } from '../../store/bookmark.ts';
import { compareValues } from '../../store/order.ts';
import type { Plan } from '../../store/store.ts';
import { kindOfType, kindsAt } from '../query/kind-table.ts';
import { asTextKind, plainReadings } from '../query/kinds.ts';
import type { Resource } from '../query/resource.ts';
import { idsShownAs, type IdReading, type Ids } from '../row/id.ts';
import { rowShownAs } from '../row/row.ts';

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
 * The bookmark that `after` stands for: a row as its JSON shows it, by its id, or in another order by value and id. If
 * it is gone or changed since, its id is read as the one kind that all ids have, and its value as the one kind of that
 * field. AppError `invalid-parameter` when no row can be named so, or when its place is not known.
 */
export async function readAfter(
  given: string,
  plan: Plan,
  resource: Ids & Pick<Resource, 'kinds'>,
  signal: AbortSignal,
): Promise<Bookmark> {
  const named = plan.sort === KEY ? { id: given, value: null } : namedBy(given);
  if (!named) throw refused(plan, given);
  const { id, value } = named;
  const ids = await idsShownAs(id, resource, signal);
  const found = await rowShownAs(id, ids, resource.rows, signal);
  const shown = found && (await orRelease(found.batch, () => bookmarkOf(documentOf(found.batch), plan)));
  found?.batch.release();
  if (shown && (value === null || [value, JSON.stringify(value)].includes(shownValue(shown, plan))))
    return shown;
  const place = found?.id ?? (await placeOf(ids, resource, signal));
  if (!place) throw refused(plan, given);
  if (value === null) return place;
  const read = await valueShownAs(value, plan, resource, signal);
  if (read === undefined) throw refused(plan, given);
  return makeBookmark({ [plan.sort]: read, _id: keyOf(place)._id });
}

/** The first of these ids that is of the kind of all ids, or of any kind if there is no row. Undefined: it is not known. */
async function placeOf(
  ids: readonly IdReading[],
  resource: Ids,
  signal: AbortSignal,
): Promise<Bookmark | undefined> {
  const { sampled } = await kindsAt(resource, KEY, signal);
  const [only, ...others] = new Set([...sampled].map(kindOfType)); // both ends of the order of ids have been looked at
  if (sampled.size === 0) return ids[0]?.id;
  return others.length === 0 ? ids.find(({ kind }) => kind === only)?.id : undefined;
}

/**
 * The value of the sort that a text shows, of the one kind of that field. Of several numbers that are shown so (a double
 * and a decimal), it is the first one in the order of the plan, behind which no row is missed. Undefined: it is not known.
 */
async function valueShownAs(
  text: string,
  { sort, direction }: Plan,
  resource: Ids & Pick<Resource, 'kinds'>,
  signal: AbortSignal,
): Promise<unknown> {
  const declared = resource.kinds.get(sort);
  const { kinds } = declared
    ? { kinds: new Set([asTextKind(declared)]) }
    : await kindsAt(resource, sort, signal);
  const readings = plainReadings(text).filter(({ kind }) => kind !== 'null' && kinds.has(kind));
  if (new Set(readings.map(({ kind }) => kind)).size > 1) return undefined;
  return readings
    .map(({ value }) => value)
    .toSorted(compareValues)
    .at(direction === 1 ? 0 : -1);
}

/** The value that orders a row, as its JSON shows it. */
function shownValue(bookmark: Bookmark, { sort }: Plan): string {
  const beforeValue = keyToJson(bookmark).length - 1 + `,${JSON.stringify(sort)}:`.length;
  return rowToJson(bookmark).slice(beforeValue, -1);
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
