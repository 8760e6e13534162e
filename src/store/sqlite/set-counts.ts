import { documentOf } from '../batch.ts';
import { KEY, valueBookmarkOf, type Bookmark } from '../bookmark.ts';
import { KEY_INDEX, type Index } from '../indexes.ts';
import { ABOVE_IDS, compareKeys, HIGHEST, joinKeys, LOWEST, type Key } from '../keys.ts';
import type { Count, CountMode, Equality, Plan, Size, ValuesFrom } from '../store.ts';
import { DamagedRowError } from './checked-rows.ts';
import type { Core } from './core.ts';
import { isByKey, keysOfBookmark, orderFor, prefixOf, rangeBounds, type Range } from './range.ts';
import { isSingle, type SetReads } from './set-reads.ts';

const COUNT_LIMIT_MS: Readonly<Record<CountMode, number>> = { estimated: 20, exact: 2_000 };
const ONE: Size = { rows: 1, bytes: 1 };
const BY_ID = { sort: KEY } as const;
/** Ranks of values that no query can name: MinKey, undefined, regular expressions, DBPointers, MaxKey. */
const UNNAMEABLE: readonly number[] = [1, 2, 50, 55, 127];

export function setCounts(
  { reader, sets, options: { now } }: Core,
  { within, begin, pass, single }: SetReads,
) {
  return { count, split, nextValue };

  /** See Collection.count. The number of all rows is kept by writes; others are counted in the index. */
  async function count(plan: Plan, mode: CountMode, signal: AbortSignal): Promise<Count> {
    signal.throwIfAborted();
    return within(plan, async (look) => {
      if (isSingle(plan)) {
        const batch = await look((set) => single(set, plan, {}), signal);
        batch.release();
        return { rows: batch.rows, is: 'exact' };
      }
      if (isByKey(plan) && !plan.range && !plan.ids)
        return { rows: await look((set) => sets.rows(set.name), signal), is: 'exact' };
      const end = now() + COUNT_LIMIT_MS[mode];
      const all = await begin(look, plan, {}, signal);
      const { rows, rest } = await pass(look, all, Infinity, signal, () => now() < end);
      return { rows, is: rest ? 'atLeast' : 'exact' };
    });
  }

  /** See Collection.split. Counts rows: parts are equal except for later changes. */
  async function split(plan: Plan, parts: number, signal: AbortSignal): Promise<readonly Bookmark[]> {
    if (parts === 1 || isSingle(plan)) return [];
    const { rows } = await count(plan, 'exact', signal);
    return within(plan, async (look) => {
      const ids: Bookmark[] = [];
      let [range, at] = [await begin(look, plan, {}, signal), 0];
      for (let part = 1; part < parts; part++) {
        const to = Math.floor((part * rows) / parts);
        const passed = await pass(look, range, to - at, signal);
        [range, at] = [passed.rest, at + passed.rows];
        if (at === 0 || !range) continue;
        const rest = range;
        const { last: next } = await look(() => {
          const batch = reader.batch(rest, 0, ONE, plan);
          batch.release();
          return batch;
        }, signal);
        const last = ids.at(-1);
        if (next && !(last && Buffer.compare(next, last) === 0)) ids.push(next);
      }
      return ids;
    });
  }

  async function nextValue(
    index: Index,
    equals: readonly Equality[],
    { after = null, range, onOmitted }: ValuesFrom,
    signal: AbortSignal,
  ): Promise<Bookmark | null> {
    const path = index.keys[equals.length]?.path ?? KEY;
    const prefix = prefixOf(equals);
    const bounds =
      range === undefined
        ? { low: joinKeys(prefix, LOWEST), high: joinKeys(prefix, ABOVE_IDS) }
        : rangeBounds(prefix, path === KEY, range);
    const behind = (value: Key): Key => joinKeys(prefix, value, path === KEY ? LOWEST : ABOVE_IDS);
    let low = after ? behind(joinKeys(...keysOfBookmark(after, [path]))) : bounds.low;
    while (compareKeys(low, bounds.high) < 0) {
      const found = await firstOf(index, equals, { ...bounds, low }, path, signal);
      if (!found) return null;
      const value = joinKeys(...keysOfBookmark(found, [path]));
      if (compareKeys(joinKeys(prefix, value, ABOVE_IDS), low) <= 0)
        throw new DamagedRowError(`values of ${path} are not in their places`); // they might never end
      const rank = value[0] ?? 0;
      if (!UNNAMEABLE.includes(rank)) return found;
      onOmitted?.();
      low = joinKeys(prefix, Uint8Array.of(rank), HIGHEST);
    }
    return null;
  }

  /** The first row of an index between keys, as the value of a path. */
  function firstOf(
    index: Index,
    equals: readonly Equality[],
    bounds: Pick<Range, 'low' | 'high'>,
    sort: string,
    signal: AbortSignal,
  ): Promise<Bookmark | null> {
    const plan: Plan = { index, equals, sort, direction: 1 };
    return within({ ...plan, ...(isByKey(plan) && { index: KEY_INDEX }) }, (look) =>
      look((set) => {
        const batch = reader.batch({ ...orderFor(set, plan), reverse: false, ...bounds }, 0, ONE, BY_ID);
        const value = batch.rows > 0 ? valueBookmarkOf(documentOf(batch).slice(), sort) : null;
        batch.release();
        return value;
      }, signal),
    );
  }
}
