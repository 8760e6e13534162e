import { AppError } from '../../../errors.ts';
import { KEY, keyPaths, type Bookmark } from '../../bookmark.ts';
import { fieldsOf } from '../fields.ts';
import { ABOVE_IDS, HIGHEST, LOWEST, compareKeys, joinKeys, numberKey, type Key } from '../../keys.ts';
import { keyOfAny } from '../../value-keys.ts';
import { BSON_RANK, rankOf } from '../../bson-types.ts';
import type { From, Plan } from '../../store.ts';
import type { ValueRange } from '../../value-range.ts';
import type { Range } from '../range.ts';
import { entriesPrefix, keyOfNamed, rowsPrefix } from './keyed.ts';
import { nameOf, type ResourceRecord } from './record.ts';

/** The range of a plan's rows after a bookmark, in the table of rows or of entries. Empty when it cannot hold a row. */
export function rangesOf(resource: ResourceRecord, plan: Plan, after: From['after']): readonly Range[] {
  const prefix = prefixOf(resource, plan);
  const isById = plan.sort === KEY;
  const [low, high] = isById ? idBounds(prefix, plan) : valueBounds(prefix, plan.range);
  const reverse = plan.direction === -1;
  const end = reverse ? low : high;
  let start = reverse ? high : low;
  const behind = after && joinKeys(prefix, ...keysOfBookmark(after, keyPaths(plan)));
  if (behind && isBefore(start, behind, reverse)) start = behind;
  if (!isBefore(start, end, reverse)) return [];
  const table = isByRows(plan) ? 'rows' : 'entries';
  return [{ table, prefix: prefix.length, values: isById ? 0 : 1, start, end, reverse }];
}

/** Whether a plan reads the table of rows in its own order. */
export function isByRows({ equals = [], sort }: Plan): boolean {
  return equals.length === 0 && sort === KEY;
}

/** The beginning of the keys of all rows of a plan. */
export function prefixOf(resource: ResourceRecord, plan: Pick<Plan, 'equals' | 'sort' | 'index'>): Key {
  const { equals = [], sort, index } = plan;
  if (equals.length === 0 && sort === KEY) return rowsPrefix(resource);
  const paths = [...equals.map(({ path }) => path), ...(sort === KEY ? [] : [sort])];
  const name = index?.name ?? nameOf(paths);
  const found = resource.indexes.find((one) => nameOf(one.paths) === name);
  if (!found) throw new TypeError(`${resource.name} has no index ${name}`);
  return joinKeys(entriesPrefix(resource, found), ...equals.map(({ value }) => keyOfNamed(value)));
}

/** The keys of a bookmark's values. Throws AppError `invalid-cursor` when one is missing. */
export function keysOfBookmark(bookmark: Bookmark, paths: readonly string[]): Key[] {
  const values = fieldsOf(bookmark, paths);
  if (typeof values === 'string') throw new AppError('invalid-cursor', `The cursor is not valid: ${values}.`);
  return values.map((value, at) => {
    if (value) return keyOfAny(value);
    throw new AppError('invalid-cursor', `The cursor has no value of ${paths[at]}.`);
  });
}

function idBounds(prefix: Key, { ids: { from, to } = {}, range }: Plan): [low: Key, high: Key] {
  if (range) return idRangeBounds(prefix, range);
  const keyOf = (id: Bookmark): Key => joinKeys(prefix, ...keysOfBookmark(id, [KEY]));
  return [
    from ? justBelow(keyOf(from)) : joinKeys(prefix, LOWEST),
    to ? keyOf(to) : joinKeys(prefix, ABOVE_IDS),
  ];
}

/** Nothing follows an id in a key, so its bounds are other than those of values. */
function idRangeBounds(prefix: Key, range: NonNullable<Plan['range']>): [low: Key, high: Key] {
  return [lowestId(prefix, range), highestId(prefix, range)];
}

export function lowestId(prefix: Key, { bracket, low }: Pick<ValueRange, 'bracket' | 'low'>): Key {
  if (low) {
    const key = joinKeys(prefix, keyOfNamed(low.value));
    return low.isInclusive ? justBelow(key) : key;
  }
  const rank = rankOf(bracket);
  return rank === BSON_RANK.number
    ? justBelow(joinKeys(prefix, numberKey(-Infinity)))
    : joinKeys(prefix, Uint8Array.of(rank));
}

export function highestId(prefix: Key, { bracket, high }: Pick<ValueRange, 'bracket' | 'high'>): Key {
  if (!high) return joinKeys(prefix, Uint8Array.of(rankOf(bracket) + 1));
  const key = joinKeys(prefix, keyOfNamed(high.value));
  return high.isInclusive ? joinKeys(key, LOWEST) : key;
}

export function valueBounds(prefix: Key, range: Plan['range']): [low: Key, high: Key] {
  if (!range) return [joinKeys(prefix, LOWEST), joinKeys(prefix, ABOVE_IDS)];
  return [lowOf(prefix, range), highOf(prefix, range)];
}

/** Below the first entry of a range. NaN belongs to no range of numbers. */
export function lowOf(prefix: Key, { bracket, low }: Pick<ValueRange, 'bracket' | 'low'>): Key {
  if (low) return joinKeys(prefix, keyOfNamed(low.value), low.isInclusive ? LOWEST : ABOVE_IDS);
  const rank = rankOf(bracket);
  return joinKeys(prefix, rank === BSON_RANK.number ? numberKey(-Infinity) : Uint8Array.of(rank), LOWEST);
}

/** Above the last entry of a range. */
export function highOf(prefix: Key, { bracket, high }: Pick<ValueRange, 'bracket' | 'high'>): Key {
  if (high) return joinKeys(prefix, keyOfNamed(high.value), high.isInclusive ? ABOVE_IDS : LOWEST);
  return joinKeys(prefix, Uint8Array.of(rankOf(bracket) + 1));
}

function isBefore(key: Key, other: Key, reverse: boolean): boolean {
  const order = compareKeys(key, other);
  return reverse ? order > 0 : order < 0;
}

/** A key below the given one and above every other key below it: keys are prefix-free, and nothing follows an id. */
export function justBelow(key: Key): Key {
  const last = key[key.length - 1] ?? 0;
  const before = key.subarray(0, -1);
  return last === 0 ? before : joinKeys(before, Uint8Array.of(last - 1), HIGHEST);
}
