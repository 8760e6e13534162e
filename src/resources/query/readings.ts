import { AppError } from '../../base/errors.ts';
import type { ProblemCode } from '../../base/problems.ts';
import { quote } from '../../input/query.ts';
import { numbersShownAs, parseDecimal } from '../../store/values/decimal.ts';
import { compareValues } from '../../store/values/order.ts';
import { BSON_TYPE } from '../../store/values/bson-types.ts';
import type { Index } from '../../store/indexes.ts';
import type { Equality, Plan } from '../../store/store.ts';
import type { ValueBound, ValueRange } from '../../store/plan.ts';
import { shownPath, type Bound, type Bounds } from './grammar.ts';
import { typeOf } from '../token/cursor.ts';
import { areFound, areInRow, rangesOfNumbers, type FieldPlace } from './found-values.ts';
import { bracketOf, BRACKETS, rangesOfKinds } from './brackets.ts';
import { asTextKind, isMisfit, readingsOf, type Kind, type Reading } from './kinds.ts';
import type { Resource } from './resource.ts';

/** What decides how a text is read when it can stand for several values. */
export interface ReadingOptions {
  readonly resource: Pick<Resource, 'kinds' | 'rows' | 'scope' | 'shown'>;
  /** The BSON types with which a walk began, see pages/value-types.ts. Null: the walk begins. */
  readonly types: Uint8Array | null;
  readonly signal: AbortSignal;
}

/** The texts of a path. Several, of one path at most, are its values of which rows have one. */
interface GivenTexts {
  readonly path: string;
  readonly texts: readonly string[];
  readonly isAmong: boolean;
}

/** What the texts stand for, and where a field behind them is: behind each of several values. */
interface ReadValues extends Pick<Plan, 'among'> {
  readonly equals: readonly Equality[];
  readonly places: readonly FieldPlace[];
}

/**
 * Reads the texts of equalities, given in the order of an index, as of the kind that a prefix, a declaration or the values
 * of the field behind the equalities before it say (found-values.ts). AppError `ambiguous-value` for several such kinds,
 * `invalid-parameter` for none.
 */
export async function readEqualities(
  given: readonly (readonly [path: string, text: string])[],
  index: Index,
  options: ReadingOptions,
): Promise<readonly Equality[]> {
  const each = given.map(([path, text]) => ({ path, texts: [text], isAmong: false }));
  return (await readValues(each, index, false, options)).equals;
}

/** The same where one path may have several values. `hasRange`: whether a range has a type behind those of the equalities. */
export async function readValues(
  given: readonly GivenTexts[],
  index: Index,
  hasRange: boolean,
  options: ReadingOptions,
): Promise<ReadValues> {
  const single = given.filter(({ isAmong }) => !isAmong).map(({ path }) => path);
  const order = single.toSorted((a, b) => (a < b ? -1 : 1));
  const equals: Equality[] = [];
  let among: ReadValues['among'];
  let places: readonly FieldPlace[] = [{ index, equals: [] }];
  for (const { path, texts, isAmong } of given) {
    const typesAt = isAmong ? order.length + (hasRange ? 1 : 0) : order.indexOf(path);
    const values: unknown[] = [];
    for (const [n, text] of texts.entries())
      values.push(await readValue({ path, places }, text, options.types?.[typesAt + n], options));
    if (isAmong) among = { path, values };
    else equals.push({ path, value: values[0] });
    places = places.flatMap((place) =>
      values.map((value) => ({ index, equals: [...place.equals, { path, value }] })),
    );
  }
  return { equals, places, ...(among && { among }) };
}

/** The value that a text stands for. `type`: with which a walk began. */
async function readValue(
  field: QueryField,
  text: string,
  type: number | undefined,
  options: ReadingOptions,
): Promise<unknown> {
  const { path } = field;
  const all = candidates(path, text, options.resource.kinds);
  if (all[0]?.isBetween) throw unlike(path, text, 'a date with at most milliseconds');
  const known = all.find(({ value }) => typeOf(value) === type);
  const { value, isNear } = known ?? (await readOne(field, text, all, options));
  if (isNear) throw unlike(path, text, 'a number of at most 34 digits');
  return value;
}

/** A field that a query asks for, and where its values can be looked at: behind each of several values. */
interface QueryField {
  readonly path: string;
  readonly places: readonly FieldPlace[];
}

/** The value that is meant by readings of one text. Of several numbers, the one that rows have. */
async function readOne(
  field: QueryField,
  text: string,
  all: readonly Reading[],
  options: ReadingOptions,
): Promise<Reading> {
  const readings = await ofFoundKinds(field, text, all, options);
  const [first, ...others] = readings;
  if (!first) throw new TypeError('a text without a reading');
  if (others.length === 0) return first;
  const { each } = rangesOfNumbers(readings.map(({ value }) => value));
  const are = await found(field, each, options);
  const own = readings.filter((_, n) => are[n]);
  if (own.length > 1) throw ambiguous(field.path, text, own);
  return own[0] ?? first;
}

/** The readings of the one kind that a text has in its field. AppErrors as of readEqualities. */
async function ofFoundKinds(
  field: QueryField,
  text: string,
  all: readonly Reading[],
  options: Omit<ReadingOptions, 'types'>,
): Promise<readonly Reading[]> {
  const { path, places } = field;
  if (options.resource.kinds.has(path) || all.every(({ spelling }) => spelling === text)) return all;
  // A text of one kind needs no look: it finds rows, or there are none. One that many share says what is wrong.
  if (all.length === 1 && places[0]?.equals.length !== 0) return all;
  const are = await found(field, rangesOfKinds(all), options);
  const readings = all.filter((_, n) => are[n]);
  if (new Set(readings.map(({ kind }) => kind)).size > 1) throw ambiguous(path, text, readings);
  if (readings.length > 0) return readings;
  const areOthers = await found(
    field,
    [...BRACKETS.values()].map((bracket) => ({ bracket })),
    options,
  );
  const own = [...BRACKETS.keys()].filter((_, n) => areOthers[n]);
  if (own.length > 0) throw unlikeValues(path, text, own, all);
  return all.filter(({ kind }) => kind === all[0]?.kind); // no row has a value
}

/** Of each range, whether the field has a value in it at one of its places. */
async function found(
  { path, places }: QueryField,
  ranges: readonly ValueRange[],
  options: Omit<ReadingOptions, 'types'>,
): Promise<readonly boolean[]> {
  let are: readonly boolean[] = ranges.map(() => false);
  for (const place of places) {
    const own = await foundAt(path, place, ranges, options);
    are = are.map((is, n) => is || own[n] === true);
    if (are.every((is) => is)) break;
  }
  return are;
}

/** The same at one place: by the index, or in the one row that a unique index names. */
function foundAt(
  path: string,
  place: FieldPlace,
  ranges: readonly ValueRange[],
  { resource: { rows, scope }, signal }: Omit<ReadingOptions, 'types'>,
): Promise<readonly boolean[]> {
  const behind = (scope?.where.length ?? 0) + place.equals.length;
  return place.index.keys[behind]?.path === path
    ? areFound(rows, place, ranges, signal)
    : areInRow(rows, place, path, ranges, signal);
}

/** Whether a text can stand for numbers of several values, which all are shown so. */
export function isSeveralNumbers(text: string): boolean {
  const readings = readingsOf(text);
  return !isMisfit(readings) && readings.filter(({ kind }) => kind === 'number').length > 1;
}

/** Whether a text that several numbers are shown as stands for numbers in its field, and no row has others between them. */
export async function areAlone(field: QueryField, text: string, options: ReadingOptions): Promise<boolean> {
  const all = candidates(field.path, text, options.resource.kinds);
  const readings = await ofFoundKinds(field, text, all, options);
  if (readings.length < 2) return false;
  const sorted = readings.map(({ value }) => value).toSorted(compareValues);
  const { between, each } = rangesOfNumbers(sorted);
  const [isBetween] = await found(field, [between, ...each], options);
  return !isBetween;
}

/** Both bounds are of the one kind of the field that their texts allow. AppErrors as of readEqualities. */
export async function readRange(
  path: string,
  { low, high }: Bounds,
  { equals, places }: Pick<ReadValues, 'equals' | 'places'>,
  options: ReadingOptions,
): Promise<ValueRange> {
  const { resource, types } = options;
  const [lows, highs] = await Promise.all(
    [low, high].map(async (bound) => {
      if (!bound) return undefined;
      const all = candidates(path, bound.text, resource.kinds);
      const known = all.filter((reading) => bracketOf(reading) === types?.[equals.length]);
      return known.length > 0 ? known : ofFoundKinds({ path, places }, bound.text, all, options);
    }),
  );
  const [bracket] = bracketsOf(lows ?? highs ?? []).filter((one) =>
    bracketsOf(highs ?? lows ?? []).includes(one),
  );
  if (bracket === undefined) throw noBracket(path, low, high);
  return {
    bracket,
    ...(resource.kinds.get(path) === 'number' && FINITE),
    ...(low && lows && { low: boundOf(low, lows, bracket, 'low') }),
    ...(high && highs && { high: boundOf(high, highs, bracket, 'high') }),
  };
}

/** The ends of a range of declared numbers: what is shown as null is in none. */
const FINITE: Pick<ValueRange, 'low' | 'high'> = {
  low: { value: -Infinity, isInclusive: false },
  high: { value: Infinity, isInclusive: false },
};

/** The values that a text can stand for at a path. A prefix wins over a declaration. */
export function candidates(path: string, text: string, kinds: ReadonlyMap<string, Kind>): readonly Reading[] {
  if (LOST_PLUS.test(text))
    throw refusal(
      path,
      `${shownPath(path)} has a blank where a plus sign belongs: got ${quote(text)}. A plus sign in a URL is written %2B.`,
    );
  const readings = readingsOf(text);
  if (isMisfit(readings)) throw unlike(path, text, `${readings.expected} behind ${readings.prefix}:`);
  const declared = kinds.get(path);
  const isPrefixed = readings.every(({ spelling }) => spelling === text);
  if (declared === undefined || isPrefixed) return readings;
  const fitting = readings.filter(({ kind }) => kind === asTextKind(declared));
  if (fitting.length === 0) throw unlike(path, text, `of the kind ${declared}`);
  return fitting;
}

/** A date whose zone or year began with a plus sign, which a query turns into a blank. */
const LOST_PLUS = /^(date:)?((\d{4}|[ +-]\d{6})-\d\d-\d\d[T ][\d:.,]+ \d\d(:?\d\d)?| \d{6}-\d\d-\d\d.*)$/i;

function unlike(path: string, text: string, expected: string): AppError {
  return refusal(path, `${shownPath(path)} must be ${expected}; got ${quote(text)}.`);
}

function unlikeValues(path: string, text: string, own: readonly string[], all: readonly Reading[]): AppError {
  const kinds = `of the kind of its values, ${own.join(' or ')}`;
  const spellings = quote(all.map(({ spelling }) => spelling).join(' or '));
  return refusal(
    path,
    `${shownPath(path)} must be ${kinds}; got ${quote(text)}. A prefix asks for another kind: ${spellings}.`,
  );
}

function ambiguous(path: string, text: string, readings: readonly Reading[]): AppError {
  const spellings = readings.map(({ spelling }) => spelling).join(' or ');
  const detail = `Rows can have ${quote(text)} as different values of ${shownPath(path)}. Write ${spellings}.`;
  return refusal(path, detail, 'ambiguous-value');
}

function noBracket(path: string, low: Bound | undefined, high: Bound | undefined): AppError {
  const texts = [low, high].flatMap((bound) => (bound ? [quote(bound.text)] : [])).join(' and ');
  const expected = 'must be values of one kind, and null is in no range';
  return refusal(path, `The bounds of ${shownPath(path)} ${expected}; got ${texts}.`);
}

function refusal(path: string, detail: string, code: ProblemCode = 'invalid-parameter'): AppError {
  return new AppError(code, detail, { parameter: shownPath(path) });
}

function bracketsOf(readings: readonly Reading[]): readonly number[] {
  return [...new Set(readings.map(bracketOf))].filter((bracket) => bracket !== undefined);
}

/**
 * A text such as 0.1 stands for a double and for a decimal, which differ, and rows of both show it. An inclusive bound
 * takes in all such values, an exclusive one leaves out all. A moment between two dates is just before the second one.
 */
function boundOf(
  { text, isInclusive }: Bound,
  readings: readonly Reading[],
  bracket: number,
  side: 'low' | 'high',
): ValueBound {
  const values = readings.filter((reading) => bracketOf(reading) === bracket);
  if (values.some(({ isBetween }) => isBetween))
    return { value: values[0]?.value, isInclusive: side === 'low' };
  const isPlain = bracket === BSON_TYPE.int32 && values.every(({ spelling }) => spelling !== text);
  const sorted =
    isPlain && parseDecimal(text, { exact: true })
      ? numbersShownAs(text)
      : values.map(({ value }) => value).toSorted(compareValues);
  return { value: sorted.at(isInclusive === (side === 'low') ? 0 : -1), isInclusive };
}
