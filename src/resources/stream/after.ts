import type { AppError } from '../../base/errors.ts';
import { conflict, documented, invalid, text } from '../../input/parameter.ts';
import { quote } from '../../input/query.ts';
import { MAX_CURSOR_BYTES } from '../token/cursor.ts';
import { keyToJson, rowToJson } from '../../rows/row-json.ts';
import { documentOf, orRelease } from '../../store/batch.ts';
import { bookmarkOf, KEY, keyOf, makeBookmark, type Bookmark } from '../../store/bookmark.ts';
import { compareValues } from '../../store/values/order.ts';
import type { Plan } from '../../store/store.ts';
import { areFound, rangesOfNumbers, type FieldPlace } from '../query/found-values.ts';
import { kindOfType, rangesOfKinds } from '../query/brackets.ts';
import { asTextKind, plainReadings, type TextKind } from '../query/kinds.ts';
import { inName } from '../query/grammar.ts';
import type { Resource } from '../query/resource.ts';
import { idsShownAs, placeOfIds, type IdReading, type Ids } from '../row/id.ts';
import { rowsShownAs } from '../row/row.ts';

/** A value of a sort may be as long as a cursor can carry it. An id has a limit of its own: see id.ts. */
export const afterParameter = documented(
  text('after', MAX_CURSOR_BYTES),
  'Continue after the row with this id, as its JSON shows it, or in another order with its value and id: `value,id`, or `[value,id]`. The row may have been deleted or changed since.',
);

/** A row as clients name it: by the value that orders it, if rows are not ordered by id, and by its id. */
interface RowName {
  readonly id: string;
  readonly value: string | null;
}

/**
 * The bookmark that `after` stands for: a row as its JSON shows it, by its id, or in another order by value and id. If
 * it is gone or changed since, its id is read as the one kind that all ids have, and its value as the one kind that the
 * field has under the equalities. AppError `invalid-parameter` when no row can be named so, or several are, and
 * `conflicting-parameters` beside several values of a field.
 */
export async function readAfter(
  given: string,
  plan: Plan,
  resource: Ids & Pick<Resource, 'kinds'>,
  signal: AbortSignal,
): Promise<Bookmark> {
  if (plan.among)
    throw conflict(
      'after',
      `after names no place among the values of ${inName(plan.among.path)}. Use a cursor.`,
    );
  const named = plan.sort === KEY ? { id: given, value: null } : namedBy(given);
  if (!named) throw refused(plan, given);
  const { id, value } = named;
  const ids = await idsShownAs(id, resource, signal);
  const [found, ...others] = await foundRows(id, ids, plan, resource, signal);
  if (others.length > 0) throw severalRows(id);
  if (found && (value === null || [value, JSON.stringify(value)].includes(shownValue(found.place, plan))))
    return found.place;
  const key = found ? keyOf(found.id)._id : await keyOfGone(ids, plan, resource, signal);
  if (key === undefined) throw refused(plan, given);
  if (value === null) return makeBookmark({ _id: key });
  const read = await valueShownAs(value, plan, resource, signal);
  if (read === undefined) throw refused(plan, given);
  return makeBookmark({ [plan.sort]: read, _id: key });
}

/** The rows that an id stands for, each by the id as it was read, and by its place in the plan. */
async function foundRows(
  id: string,
  ids: readonly IdReading[],
  plan: Plan,
  { rows }: Ids,
  signal: AbortSignal,
): Promise<readonly { readonly id: Bookmark; readonly place: Bookmark }[]> {
  const found: { id: Bookmark; place: Bookmark }[] = [];
  for await (const { batch, id: read } of rowsShownAs(id, ids, rows, signal)) {
    const place = await orRelease(batch, () => bookmarkOf(documentOf(batch), plan));
    batch.release();
    found.push({ id: read, place });
  }
  return found;
}

/** The id that a text shows of the kind of all ids, or of any kind if there is no row. Undefined: it is not known. */
async function keyOfGone(
  ids: readonly IdReading[],
  { direction }: Plan,
  resource: Ids,
  signal: AbortSignal,
): Promise<unknown> {
  const lowest = await endOf(resource.rows, 1, signal);
  const highest = await endOf(resource.rows, -1, signal);
  const valuesOf = (readings: readonly IdReading[]) => readings.map(({ id }) => keyOf(id)._id);
  if (lowest === null || highest === null) return valuesOf(ids)[0];
  if (lowest !== highest) return undefined; // ids are in the order of their kinds
  const values = valuesOf(ids.filter(({ kind }) => kind === lowest));
  if (values.length <= 1) return values[0];
  const place = await placeOfIds(resource, signal);
  return place ? oneOf(values, place, direction, resource, signal) : undefined;
}

/** The kind of the first or the last id. Null: there is no row. Undefined: no text without a prefix stands for it. */
async function endOf(
  rows: Ids['rows'],
  direction: 1 | -1,
  signal: AbortSignal,
): Promise<TextKind | null | undefined> {
  const batch = await rows.read({ sort: KEY, direction }, {}, { rows: 1, bytes: 1 }, signal);
  const { last } = batch;
  batch.release();
  return last && kindOfType(last[TYPE_AT] ?? 0);
}

/** Where the type of a document's first element is. */
const TYPE_AT = 4;

/** The value of the sort that a text shows, of the one kind of that field. Undefined: it is not known. */
async function valueShownAs(
  text: string,
  { index, equals = [], sort, direction }: Plan,
  resource: Ids & Pick<Resource, 'kinds'>,
  signal: AbortSignal,
): Promise<unknown> {
  if (!index) throw new TypeError('a plan in the order of a field names its index');
  const place = { index, equals };
  const declared = resource.kinds.get(sort);
  const all = plainReadings(text).filter(({ isNear }) => !isNear);
  const ranges = rangesOfKinds(all);
  const found = declared ? [] : await areFound(resource.rows, place, ranges, signal);
  const own = all.filter(({ kind }, n) => (declared ? kind === asTextKind(declared) : found[n]));
  if (new Set(own.map(({ kind }) => kind)).size > 1) return undefined;
  const values = own.map(({ value }) => value);
  return values.length <= 1 ? values[0] : oneOf(values, place, direction, resource, signal);
}

/**
 * Of the numbers that are shown alike (a double and a decimal): the one that rows have; where none has, the first one in the
 * order of the plan, as no row lies between them. Undefined: rows have both, or others between them.
 */
async function oneOf(
  values: readonly unknown[],
  place: FieldPlace,
  direction: 1 | -1,
  { rows }: Ids,
  signal: AbortSignal,
): Promise<unknown> {
  const sorted = values.toSorted(compareValues);
  const { between, each } = rangesOfNumbers(sorted);
  const [isBetween, ...are] = await areFound(rows, place, [between, ...each], signal);
  const found = sorted.filter((_, n) => are[n]);
  if (isBetween || found.length > 1) return undefined;
  return found[0] ?? sorted.at(direction === 1 ? 0 : -1);
}

/** The value that orders a row, as its JSON shows it. */
function shownValue(bookmark: Bookmark, { sort }: Plan): string {
  const beforeValue = keyToJson(bookmark).length - 1 + `,${JSON.stringify(sort)}:`.length;
  return rowToJson(bookmark).slice(beforeValue, -1);
}

/** The value and the id in `VALUE,id`, or in the JSON array `["VALUE","id"]`, whose value may have commas. */
function namedBy(given: string): RowName | null {
  return given.startsWith('[') ? arrayOf(given) : pairOf(given);
}

function pairOf(given: string): RowName | null {
  const comma = given.indexOf(',');
  if (comma < 0) return null;
  return named(given.slice(0, comma), given.slice(comma + 1));
}

function arrayOf(given: string): RowName | null {
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
function named(value: string, id: string, isText = false): RowName {
  if (value === 'null' && !isText)
    throw invalid(
      'after',
      'after cannot name a row whose sort value shows as null, which stands for several values. Use a cursor.',
    );
  return { value, id };
}

function severalRows(id: string): AppError {
  return invalid('after', `after must name one row; several rows show the id ${quote(id)}. Use a cursor.`);
}

function refused({ sort }: Plan, given: string): AppError {
  const expected =
    sort === KEY
      ? 'the id of a row as its JSON shows it, of a type that ids of this collection have'
      : 'the value of the sort and the id of a row as its JSON shows them: separated by a comma, or as a JSON array of two strings';
  return invalid('after', `after must be ${expected}; got ${quote(given)}.`);
}
