import { getOrMake } from '../../base/get-or-make.ts';
import { RecentMap } from '../../base/recent-map.ts';
import { documentOf, orRelease } from '../../store/batch.ts';
import { KEY, textOf, valueBookmarkOf, type Bookmark } from '../../store/bookmark.ts';
import { BSON } from '../../store/values/bson.ts';
import { BSON_TYPE } from '../../store/values/bson-types.ts';
import { awaitAtMost, withDeadline } from '../../store/turns/deadline.ts';
import type { Index } from '../../store/indexes.ts';
import { comparePlaces } from '../../store/values/order.ts';
import type { ValueBound, ValueRange } from '../../store/plan.ts';
import type { Collection, Equality, Plan } from '../../store/store.ts';
import { bracketOfType } from './brackets.ts';

/** A field of an index behind values of the fields before it. Of a part: without the values that all its rows have. */
export interface FieldPlace {
  readonly index: Index;
  readonly equals: readonly Equality[];
}

/** How long a look may take. Milliseconds. */
const LOOK_MS = 10_000;
/** How long a look is believed that found a value, and one that found none beside another that did. Milliseconds. */
const FOUND_MS = 5_000;
const NONE_MS = 1_000;
/** Looks that are kept, in each of two generations, and the bytes of what the longest of them asked: 5 MB at most. */
const KEPT = 5_000;
const LONGEST_ASKED = 512;

/** Under way, or what it found and until when that is believed. */
type Look = Promise<boolean> | { readonly isFound: boolean; readonly until: number };

/** By collection, place and range. */
const looks = new RecentMap<Look>(KEPT);
const numbers = new WeakMap<Collection, number>();
let collections = 0;

/**
 * Of each range, whether rows have a value in it at a place: one entry of the index is read for each. What was found is
 * kept for seconds. Where nothing was found at all, nothing is kept, as rows may come at any time. Rejects as reads do.
 */
export async function areFound(
  rows: Collection,
  place: FieldPlace,
  ranges: readonly ValueRange[],
  signal: AbortSignal,
  now: () => number = () => performance.now(),
): Promise<readonly boolean[]> {
  const collection = getOrMake(numbers, rows, () => ++collections);
  const keep = (text: string, look: Look): void => {
    if (text.length <= LONGEST_ASKED) looks.set(text, look);
  };
  /** Shared by all who ask meanwhile, so it does not end with one of them. */
  const begin = (text: string, range: ValueRange): Promise<boolean> => {
    const looking = withDeadline(LOOK_MS, undefined, async (limit) => {
      return (await rows.nextValue(place.index, place.equals, { range }, limit)) !== null;
    });
    keep(text, looking);
    const end = (isFound: boolean) => keep(text, { isFound, until: isFound ? now() + FOUND_MS : 0 });
    looking.then(end, () => end(false));
    return looking;
  };
  const texts = ranges.map((range) => `${collection} ${textOfAsked(place, range)}`);
  const looking = ranges.map((range, n) => {
    const text = texts[n] ?? '';
    const known = looks.get(text);
    if (known instanceof Promise) return known;
    return known && known.until > now() ? known.isFound : begin(text, range);
  });
  if (looking.every((one) => typeof one === 'boolean')) return looking;
  const all = Promise.all(looking.map((one) => Promise.resolve(one)));
  const found = await awaitAtMost(LOOK_MS, signal, all);
  if (found.includes(true))
    for (const [n, text] of texts.entries())
      if (!found[n] && looking[n] !== false) keep(text, { isFound: false, until: now() + NONE_MS });
  return found;
}

/** The same of the one row at most that the equalities name by a unique index, at a path that is not in this. */
export async function areInRow(
  rows: Collection,
  { index, equals }: FieldPlace,
  path: string,
  ranges: readonly ValueRange[],
  signal: AbortSignal,
): Promise<readonly boolean[]> {
  const plan: Plan = { index, equals, sort: KEY, direction: 1 };
  const batch = await rows.read(plan, {}, { rows: 1, bytes: 1 }, signal);
  const value = await orRelease(batch, () =>
    batch.rows > 0 ? valueBookmarkOf(documentOf(batch), path) : null,
  );
  batch.release();
  return ranges.map((range) => value !== null && isWithin(value, range));
}

function isWithin(value: Bookmark, { bracket, low, high }: ValueRange): boolean {
  if (bracketOfType(value[TYPE_AT] ?? 0) !== bracket) return false;
  const side = ({ value: bound }: ValueBound) => comparePlaces(value, BSON.serialize({ bound }) as Bookmark);
  return (
    (!low || side(low) > (low.isInclusive ? -1 : 0)) && (!high || side(high) < (high.isInclusive ? 1 : 0))
  );
}

/** Where the type of a document's first element is. */
const TYPE_AT = 4;

/** Of numbers in ascending order: the range between the lowest and the highest, and that of each alone. */
export function rangesOfNumbers(sorted: readonly unknown[]) {
  const bracket = BSON_TYPE.int32;
  const [low, high] = [sorted[0], sorted.at(-1)].map((value) => ({ value, isInclusive: false }));
  const between: ValueRange = { bracket, ...(low && { low }), ...(high && { high }) };
  const each = sorted.map((value): ValueRange => {
    const bound = { value, isInclusive: true };
    return { bracket, low: bound, high: bound };
  });
  return { between, each };
}

/** What was asked, as a text of its own: the index, the values before the field, and the range. */
function textOfAsked({ index, equals }: FieldPlace, { bracket, low, high }: ValueRange): string {
  if (equals.length === 0 && !low && !high) return `${index.name}\0${bracket}`; // without a walk through BSON: most looks
  const values = equals.map(({ value }) => value);
  return `${index.name}\0${textOf(BSON.serialize({ bracket, low, high, values }))}`;
}
