import type { IndexName } from './tables.ts';
import { HIGHEST, LOWEST, NUMBER_KEY_BYTES, compareKeys, joinKeys, type Key } from '../keys.ts';
import { keyOfBookmark, keyOfCategory } from './row.ts';
import { valueBounds } from './rows/range.ts';
import { KEY, type Bookmark } from '../bookmark.ts';
import type { From, Plan } from '../store.ts';

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
}

/**
 * The range of a plan's rows after a bookmark. Empty when it cannot hold a row. A bookmark before the plan's first row
 * starts at the first row. Throws AppError `invalid-cursor` when the bookmark has a type that no row here has.
 */
export function rangesOf(plan: Plan, after: From['after']): readonly Range[] {
  const category = keyOfEquals(plan);
  const fields = plan.sort === KEY ? (['_id'] as const) : (['price', '_id'] as const);
  const behind = after ? joinKeys(category, keyOfBookmark(after, fields)) : null;
  const reverse = plan.direction === -1;
  const table = tableOf(plan);
  const prefix = category.length + (plan.sort === KEY ? 0 : NUMBER_KEY_BYTES);
  const [low, high] = plan.range ? valueBounds(category, plan.range) : idBounds(plan, category);
  const end = reverse ? low : high;
  let start = reverse ? high : low;
  if (behind && isBefore(start, behind, reverse)) start = behind;
  return isBefore(start, end, reverse) ? [{ table, prefix, start, end, reverse }] : [];
}

function idBounds({ ids: { from, to } = {} }: Plan, category: Key): [low: Key, high: Key] {
  const idKey = (id: Bookmark): Key => joinKeys(category, keyOfBookmark(id, ['_id']));
  return [
    from ? justBelow(idKey(from)) : joinKeys(category, LOWEST),
    to ? idKey(to) : joinKeys(category, HIGHEST),
  ];
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
