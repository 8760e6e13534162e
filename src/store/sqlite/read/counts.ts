import { documentOf } from '../../batch.ts';
import { KEY, valueBookmarkOf, type Bookmark } from '../../bookmark.ts';
import { KEY_INDEX, type Index } from '../../indexes.ts';
import { ABOVE_IDS, compareKeys, HIGHEST, joinKeys, LOWEST, type Key } from '../../values/keys.ts';
import type { Count, CountMode, Equality, Plan, Size, ValuesFrom } from '../../store.ts';
import { DamagedRowError } from '../file/checked-rows.ts';
import type { CollectionLooks } from './collection-looks.ts';
import { isByKey, isSingle, keysOfBookmark, orderFor, prefixOf, rangeBounds, type Range } from './range.ts';
import type { Reads } from './reads.ts';

const COUNT_LIMIT_MS: Readonly<Record<CountMode, number>> = { estimated: 20, exact: 2_000 };
const ONE: Size = { rows: 1, bytes: 1 };
const BY_ID = { sort: KEY } as const;
/** Ranks of values that no query can name: MinKey, undefined, regular expressions, DBPointers, MaxKey. */
const UNNAMEABLE: readonly number[] = [1, 2, 50, 55, 127];

/** Counts the rows of a collection, and finds where its parts and its values begin. */
export class Counts {
  readonly #looks: CollectionLooks;
  readonly #reads: Reads;

  constructor(looks: CollectionLooks, reads: Reads) {
    this.#looks = looks;
    this.#reads = reads;
  }

  /** See Collection.count. The number of all rows is kept by writes; others are counted in the index. */
  async count(plan: Plan, mode: CountMode, signal: AbortSignal): Promise<Count> {
    signal.throwIfAborted();
    const { collections, options } = this.#looks.core;
    return this.#looks.within(plan, signal, async (looks) => {
      if (isSingle(plan)) {
        const batch = await looks.take((collection) => this.#reads.single(collection, plan, {}));
        batch.release();
        return { rows: batch.rows, is: 'exact' };
      }
      if (isByKey(plan) && !plan.range && !plan.ids)
        return { rows: await looks.take((collection) => collections.rows(collection.name)), is: 'exact' };
      const end = options.now() + COUNT_LIMIT_MS[mode];
      const { rows, rest } = await looks.pass(await looks.range(), Infinity, () => options.now() < end);
      return { rows, is: rest ? 'atLeast' : 'exact' };
    });
  }

  /** See Collection.split. Counts rows: parts are equal except for later changes. */
  async split(plan: Plan, parts: number, signal: AbortSignal): Promise<readonly Bookmark[]> {
    if (parts === 1 || isSingle(plan)) return [];
    const { rows } = await this.count(plan, 'exact', signal);
    return this.#looks.within(plan, signal, async (looks) => {
      const ids: Bookmark[] = [];
      let range = await looks.range();
      let at = 0;
      for (let part = 1; part < parts; part++) {
        const to = Math.floor((part * rows) / parts);
        const passed = await looks.pass(range, to - at);
        const { rest } = passed;
        range = rest;
        at += passed.rows;
        if (at === 0 || !rest) continue;
        const next = await looks.take(() => {
          const batch = this.#looks.core.reader.batch(rest, 0, ONE, plan);
          batch.release();
          return batch.last;
        });
        const last = ids.at(-1);
        if (next && !(last && Buffer.compare(next, last) === 0)) ids.push(next);
      }
      return ids;
    });
  }

  /** See Collection.nextValue. */
  async nextValue(
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
      const found = await this.#firstOf(
        { index, equals, sort: path, direction: 1 },
        { ...bounds, low },
        signal,
      );
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

  /** The first row of an index between keys, as the value of the field that the plan sorts by. */
  #firstOf(plan: Plan, bounds: Pick<Range, 'low' | 'high'>, signal: AbortSignal): Promise<Bookmark | null> {
    const read: Plan = isByKey(plan) ? { ...plan, index: KEY_INDEX } : plan;
    return this.#looks.within(read, signal, (looks) =>
      looks.take((collection) => {
        const range = { ...orderFor(collection, plan), reverse: false, ...bounds };
        const batch = this.#looks.core.reader.batch(range, 0, ONE, BY_ID);
        const value = batch.rows > 0 ? valueBookmarkOf(documentOf(batch).slice(), plan.sort) : null;
        batch.release();
        return value;
      }),
    );
  }
}
