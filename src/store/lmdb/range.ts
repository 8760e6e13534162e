import type { IndexName } from './tables.ts';
import {
  ABOVE_IDS,
  HIGHEST,
  LOWEST,
  NUMBER_KEY_BYTES,
  compareKeys,
  decimalKey,
  joinKeys,
  numberKey,
} from './keys.ts';
import { keyOfBookmark, keyOfCategory } from './row.ts';
import type { Key } from './keys.ts';
import { KEY, type Bookmark } from '../bookmark.ts';
import { stretchesOf, type End, type Stretch } from '../number-range.ts';
import type { From, Plan } from '../store.ts';
import { asNumberRange } from '../value-range.ts';

/**
 * Where the rows of a plan are in the file: between `start` and `end`, both exclusive, in the direction of reading.
 */
export interface Range {
  readonly table: 'items' | IndexName | 'rows' | 'entries';
  /** Number of bytes in the table's keys before the id. A price may have a longer key: see keys.ts. */
  readonly prefix: number;
  /** For `entries`: so many values follow the prefix, and then comes the id. */
  readonly values?: number;
  readonly start: Key;
  readonly end: Key;
  readonly reverse: boolean;
  /** Only rows whose price is a double, or only the others. undefined: all rows. */
  readonly only?: Stretch['only'] | undefined;
}

/**
 * The ranges of a plan's rows after a bookmark, in the order to read them. Empty when they cannot hold a row. There is
 * one range, except for a range of several stretches: see number-range.ts. A bookmark before the plan's first row
 * starts at the first row. Throws AppError `invalid-cursor` when the bookmark has a type that no row here has.
 */
export function rangesOf(plan: Plan, after: From['after']): readonly Range[] {
  const category = keyOfEquals(plan);
  const fields = plan.sort === KEY ? (['_id'] as const) : (['price', '_id'] as const);
  const behind = after ? joinKeys(category, keyOfBookmark(after, fields)) : null;
  const reverse = plan.direction === -1;
  const table = tableOf(plan);
  const prefix = category.length + (plan.sort === KEY ? 0 : NUMBER_KEY_BYTES);
  const ranges: Range[] = [];
  for (const { low, high, only } of boundsOf(plan, category)) {
    const end = reverse ? low : high;
    let start = reverse ? high : low;
    if (behind && isBefore(start, behind, reverse)) start = behind;
    if (isBefore(start, end, reverse)) ranges.push({ table, prefix, start, end, reverse, only });
  }
  return reverse ? ranges.reverse() : ranges;
}

interface Bounds {
  readonly low: Key;
  readonly high: Key;
  readonly only?: Stretch['only'] | undefined;
}

function boundsOf(plan: Plan, category: Key): Bounds[] {
  const range = asNumberRange(plan.range);
  if (range)
    return stretchesOf(range).map(({ from, to, only }) => ({
      low: joinKeys(category, keyOfEnd(from), from.inclusive ? LOWEST : ABOVE_IDS),
      high: joinKeys(category, keyOfEnd(to), to.inclusive ? ABOVE_IDS : LOWEST),
      only,
    }));
  const { from, to } = plan.ids ?? {};
  const idKey = (id: Bookmark): Key => joinKeys(category, keyOfBookmark(id, ['_id']));
  return [
    {
      low: from ? justBelow(idKey(from)) : joinKeys(category, LOWEST),
      high: to ? idKey(to) : joinKeys(category, HIGHEST),
      only: undefined,
    },
  ];
}

function keyOfEnd({ value }: End): Key {
  return typeof value === 'number' ? numberKey(value) : decimalKey(value);
}

/** The table of each order that items have an index for, by its paths. */
const TABLES: ReadonlyMap<string, Range['table']> = new Map([
  ['_id', 'items'],
  ['price', 'byPrice'],
  ['category _id', 'byCategory'],
  ['category price', 'byCategoryPrice'],
]);

function tableOf({ equals = [], sort }: Plan): Range['table'] {
  const table = TABLES.get(equals.reduceRight((rest, { path }) => `${path} ${rest}`, sort));
  if (!table) throw new TypeError(`items have no index for the order of ${sort}`);
  return table;
}

/** The key that all entries of a plan begin with. */
function keyOfEquals({ equals = [] }: Plan): Key {
  return joinKeys(...equals.map(({ value }) => keyOfCategory(String(value))));
}

function isBefore(key: Key, other: Key, reverse: boolean): boolean {
  const order = compareKeys(key, other);
  return reverse ? order > 0 : order < 0;
}

/**
 * A key below the given key and above every other key below it. Keys are prefix-free, and those of one type end alike.
 */
function justBelow(key: Key): Key {
  const last = key[key.length - 1] ?? 0;
  const before = key.subarray(0, -1);
  return last === 0 ? before : joinKeys(before, Uint8Array.of(last - 1), HIGHEST);
}
