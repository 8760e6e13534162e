import type { IndexName } from './tables.ts';
import { HIGHEST, LOWEST, NUMBER_KEY_BYTES, compareKeys, joinKeys, numberKey } from './keys.ts';
import { keyOfBookmark, keyOfCategory } from './row.ts';
import type { Key } from './keys.ts';
import type { Bookmark } from '../bookmark.ts';
import type { From, Plan } from '../store.ts';

/** Where in the file a plan's rows are. Rows are between `start` and `end`, both exclusive, in the direction of reading. */
export interface Range {
  readonly table: 'items' | IndexName;
  /** How many bytes of the table's keys stand before the id. */
  readonly prefix: number;
  readonly start: Key;
  readonly end: Key;
  readonly reverse: boolean;
}

/**
 * The range of a plan's rows behind a bookmark; null when no row can be in it. A bookmark before the plan's first row
 * reads from the first row on. AppError `invalid-cursor` when the bookmark is of a kind that no row here has.
 */
export function rangeOf(plan: Plan, after: From['after']): Range | null {
  const table = tableOf(plan);
  const category = plan.category === undefined ? new Uint8Array(0) : keyOfCategory(plan.category);
  // LOWEST and HIGHEST behind a bound put it before or behind all rows that have exactly the bound's price.
  const { minPrice, maxPrice, ids } = plan;
  const idKey = (id: Bookmark): Key => joinKeys(category, keyOfBookmark(id, ['_id']));
  const low = ids?.from
    ? justBelow(idKey(ids.from))
    : joinKeys(category, ...(minPrice === undefined ? [] : [numberKey(minPrice)]), LOWEST);
  const high = ids?.to
    ? idKey(ids.to)
    : joinKeys(category, ...(maxPrice === undefined ? [] : [numberKey(maxPrice)]), HIGHEST);
  const reverse = plan.direction === -1;
  const end = reverse ? low : high;
  let start = reverse ? high : low;
  if (after) {
    const fields = plan.order === 'price' ? (['price', '_id'] as const) : (['_id'] as const);
    const behind = joinKeys(category, keyOfBookmark(after, fields));
    if (isBefore(start, behind, reverse)) start = behind;
  }
  if (!isBefore(start, end, reverse)) return null;
  const prefix = category.length + (plan.order === 'price' ? NUMBER_KEY_BYTES : 0);
  return { table, prefix, start, end, reverse };
}

function tableOf(plan: Plan): Range['table'] {
  if (plan.order === 'price') return plan.category === undefined ? 'byPrice' : 'byCategoryPrice';
  return plan.category === undefined ? 'items' : 'byCategory';
}

function isBefore(key: Key, other: Key, reverse: boolean): boolean {
  const order = compareKeys(key, other);
  return reverse ? order > 0 : order < 0;
}

/** Below a key and above every key that is below it: keys are prefix-free, and those of one type end alike. */
function justBelow(key: Key): Key {
  const last = key[key.length - 1] ?? 0;
  const before = key.subarray(0, -1);
  return last === 0 ? before : joinKeys(before, Uint8Array.of(last - 1), HIGHEST);
}
