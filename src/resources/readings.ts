import { AppError } from '../errors.ts';
import { quote } from '../input/query.ts';
import { BSON } from '../store/bson.ts';
import { BSON_TYPE } from '../store/bson-types.ts';
import type { Index } from '../store/indexes.ts';
import { compareNumbers } from '../store/number.ts';
import type { Equality } from '../store/store.ts';
import type { ValueBound, ValueRange } from '../store/value-range.ts';
import { shownPath, type Bound, type Bounds } from './grammar.ts';
import { isMisfit, readingsOf, type Kind, type Reading } from './kinds.ts';
import type { Resource } from './resource.ts';

/** What decides how a text is read when it can stand for several values. */
export interface ReadingOptions {
  readonly resource: Pick<Resource, 'rows' | 'kinds'>;
  readonly index: Index;
  /** The BSON types with which a walk began, see pages/value-types.ts. Null: the walk begins. */
  readonly types: Uint8Array | null;
  /** Values that are known already, by path. */
  readonly fixed?: readonly Equality[];
  readonly signal: AbortSignal;
}

/** The type that stands for the bracket of a kind, see ValueRange. Values of null have no range. */
const BRACKETS: Readonly<Record<Exclude<Kind, 'null'>, number>> = {
  string: BSON_TYPE.string,
  number: BSON_TYPE.int32,
  decimal: BSON_TYPE.int32,
  objectid: BSON_TYPE.objectId,
  date: BSON_TYPE.date,
  uuid: BSON_TYPE.binary,
  boolean: BSON_TYPE.boolean,
};

/**
 * Reads the texts of equalities, given in the order of the index. A text whose kind is neither declared, nor fixed by a
 * prefix, nor known from a cursor can stand for several values. The store is then asked which of them has rows behind
 * the values before it: one read of limit 1 each. The reading that has rows is meant. When none has, no row matches,
 * whichever is taken. AppError `ambiguous-value` when several have, `invalid-parameter` for a text that is not of the
 * declared kind or of its prefix.
 */
export async function readEqualities(
  given: readonly (readonly [path: string, text: string])[],
  options: ReadingOptions,
): Promise<readonly Equality[]> {
  const { resource, index, types, fixed = [], signal } = options;
  const places = given.map(([path]) => path).toSorted((a, b) => (a < b ? -1 : 1));
  const equals: Equality[] = [];
  for (const [path, text] of given) {
    const own = fixed.find((one) => one.path === path);
    if (own) {
      equals.push(own);
      continue;
    }
    const all = candidates(path, text, resource.kinds);
    if (all[0]?.isBetween) throw unlike(path, text, 'a date with at most milliseconds');
    const type = types?.[places.indexOf(path)];
    const known = all.filter(({ value }) => typeOf(value) === type);
    const readings = known.length > 0 ? known : all;
    const [only] = readings;
    if (!only) throw new TypeError('a text without a reading');
    const held: Reading[] = [];
    for (const reading of readings.length > 1 ? readings : []) {
      const { value } = reading;
      if (await resource.rows.holds(index, [...equals, { path, value }], undefined, signal))
        held.push(reading);
    }
    if (held.length > 1) throw ambiguous(path, text, held);
    equals.push({ path, value: (held[0] ?? only).value });
  }
  return equals;
}

/**
 * Reads the bounds of a range behind these equalities. Both are of one bracket of types: the only one that both texts
 * allow, or else the only one of which there are values. AppErrors as of readEqualities.
 */
export async function readRange(
  path: string,
  { low, high }: Bounds,
  equals: readonly Equality[],
  { resource, index, types, signal }: ReadingOptions,
): Promise<ValueRange> {
  const lows = low && candidates(path, low.text, resource.kinds);
  const highs = high && candidates(path, high.text, resource.kinds);
  const shared = bracketsOf(lows ?? highs ?? []).filter((bracket) =>
    bracketsOf(highs ?? lows ?? []).includes(bracket),
  );
  if (shared.length === 0) throw noBracket(path, low, high);
  const known = shared.filter((bracket) => bracket === types?.[equals.length]);
  const brackets = known.length > 0 ? known : shared;
  const held: number[] = [];
  const canAsk = index.keys[equals.length]?.path === path;
  for (const bracket of brackets.length > 1 && canAsk ? brackets : [])
    if (await resource.rows.holds(index, equals, bracket, signal)) held.push(bracket);
  const [bracket = brackets[0] ?? 0, second] = held;
  if (second !== undefined || (brackets.length > 1 && !canAsk)) {
    const of = (lows ?? highs ?? []).filter((reading) =>
      (canAsk ? held : brackets).includes(bracketOf(reading) ?? 0),
    );
    throw ambiguous(path, (low ?? high)?.text ?? '', of);
  }
  return {
    bracket,
    ...(low && lows && { low: boundOf(low, lows, bracket, 'low') }),
    ...(high && highs && { high: boundOf(high, highs, bracket, 'high') }),
  };
}

/** The values that a text can stand for at a path. A prefix wins over a declaration. */
export function candidates(path: string, text: string, kinds: ReadonlyMap<string, Kind>): readonly Reading[] {
  if (LOST_PLUS.test(text))
    throw new AppError(
      'invalid-parameter',
      `${shownPath(path)} has a blank where a plus sign belongs: got ${quote(text)}. A plus sign in a URL is written %2B.`,
      { parameter: shownPath(path) },
    );
  const readings = readingsOf(text);
  if (isMisfit(readings)) throw unlike(path, text, `${readings.expected} behind ${readings.prefix}:`);
  const declared = kinds.get(path);
  const isPrefixed = readings.every(({ spelling }) => spelling === text);
  if (declared === undefined || isPrefixed) return readings;
  const fitting = readings.filter(({ kind }) => kind === declared);
  if (fitting.length === 0) throw unlike(path, text, `of the kind ${declared}`);
  return fitting;
}

/** A date whose zone or year began with a plus sign, which a query turns into a blank. */
const LOST_PLUS = /^(date:)?((\d{4}|[ +-]\d{6})-\d\d-\d\d[T ][\d:.,]+ \d\d(:?\d\d)?| \d{6}-\d\d-\d\d.*)$/i;

function unlike(path: string, text: string, expected: string): AppError {
  const name = shownPath(path);
  return new AppError('invalid-parameter', `${name} must be ${expected}; got ${quote(text)}.`, {
    parameter: name,
  });
}

function ambiguous(path: string, text: string, readings: readonly Reading[]): AppError {
  const name = shownPath(path);
  const spellings = readings.map(({ spelling }) => spelling).join(' or ');
  const kinds = readings.map(({ kind }) => kind).join(' and as ');
  return new AppError(
    'ambiguous-value',
    `There are rows with ${name} as ${kinds} for ${quote(text)}. Write ${spellings}.`,
    { parameter: name },
  );
}

function noBracket(path: string, low: Bound | undefined, high: Bound | undefined): AppError {
  const name = shownPath(path);
  const texts = [low, high].flatMap((bound) => (bound ? [quote(bound.text)] : []));
  return new AppError(
    'invalid-parameter',
    `The bounds of ${name} must be values of one kind, and null is in no range; got ${texts.join(' and ')}.`,
    { parameter: name },
  );
}

function bracketOf({ kind }: Reading): number | undefined {
  return kind === 'null' ? undefined : BRACKETS[kind];
}

function bracketsOf(readings: readonly Reading[]): readonly number[] {
  return [...new Set(readings.map(bracketOf))].filter((bracket) => bracket !== undefined);
}

/**
 * A text such as 0.1 stands for a double and for a decimal, which differ, and rows of both show it. An inclusive bound
 * takes in all such values, an exclusive one leaves out all. A moment between two dates is just before the second one.
 */
function boundOf(
  { isInclusive }: Bound,
  readings: readonly Reading[],
  bracket: number,
  side: 'low' | 'high',
): ValueBound {
  const values = readings.filter((reading) => bracketOf(reading) === bracket);
  if (values.some(({ isBetween }) => isBetween))
    return { value: values[0]?.value, isInclusive: side === 'low' };
  const sorted = values.map(({ value }) => value).sort(compareNumbers);
  return { value: sorted.at(isInclusive === (side === 'low') ? 0 : -1), isInclusive };
}

function typeOf(value: unknown): number | undefined {
  return BSON.serialize({ value })[4];
}
