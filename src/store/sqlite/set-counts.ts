import { documentOf } from '../batch.ts';
import { KEY, valueBookmarkOf, type Bookmark } from '../bookmark.ts';
import { KEY_INDEX, type Index } from '../indexes.ts';
import type { Count, CountMode, Equality, Plan, Size, ValuesFrom } from '../store.ts';
import { ABOVE_IDS, HIGHEST, joinKeys, LOWEST, type Key } from '../keys.ts';
import { highestId, highestValue, isByKey, keysOfBookmark, lowestId, orderFor } from './range.ts';
import { lowestValue, prefixOf, type Range } from './range.ts';
import type { SetParts } from './set-parts.ts';
import { isSingle, type SetLooks } from './set-looks.ts';
import type { SetReads } from './set-reads.ts';

/** How long counting may take, in milliseconds. */
const COUNT_LIMIT_MS: Readonly<Record<CountMode, number>> = { estimated: 20, exact: 2_000 };
const ONE: Size = { rows: 1, bytes: 1 };
const BY_ID = { sort: KEY } as const;
/** Ranks of values that no query can name: MinKey, undefined, regular expressions, DBPointers, MaxKey. */
const UNNAMEABLE: readonly number[] = [1, 2, 50, 55, 127];

/** Counts the rows of a set, divides them, and finds the values that they have. */
export class SetCounts {
  readonly #options: SetParts;
  readonly #setLooks: SetLooks;
  readonly #reads: SetReads;

  constructor(options: SetParts, setLooks: SetLooks, reads: SetReads) {
    [this.#options, this.#setLooks, this.#reads] = [options, setLooks, reads];
  }

  /** See Collection.count. The number of all rows is kept by writes; others are counted in the index. */
  count(plan: Plan, mode: CountMode, signal: AbortSignal): Promise<Count> {
    signal.throwIfAborted();
    return this.#setLooks.within(plan, async (look) => {
      if (isSingle(plan)) {
        const batch = await look((set) => this.#reads.single(set, plan, {}), signal);
        batch.release();
        return { rows: batch.rows, is: 'exact' };
      }
      const { sets, now } = this.#options;
      if (isByKey(plan) && !plan.range && !plan.ids)
        return { rows: await look((set) => sets.rows(set.name), signal), is: 'exact' };
      const end = now() + COUNT_LIMIT_MS[mode];
      const all = await this.#reads.begin(look, plan, {}, signal);
      const { rows, rest } = await this.#reads.pass(look, all, Infinity, signal, () => now() < end);
      return { rows, is: rest ? 'atLeast' : 'exact' };
    });
  }

  /** See Collection.split. Counts rows: parts are equal except for later changes. */
  async split(plan: Plan, parts: number, signal: AbortSignal): Promise<readonly Bookmark[]> {
    if (parts === 1 || isSingle(plan)) return [];
    const { rows } = await this.count(plan, 'exact', signal);
    return this.#setLooks.within(plan, async (look) => {
      const ids: Bookmark[] = [];
      let [range, at] = [await this.#reads.begin(look, plan, {}, signal), 0];
      for (let part = 1; part < parts; part++) {
        const to = Math.floor((part * rows) / parts);
        const passed = await this.#reads.pass(look, range, to - at, signal);
        [range, at] = [passed.rest, at + passed.rows];
        if (at === 0 || !range) continue;
        const rest = range;
        const { last: next } = await look((set) => {
          const batch = this.#options.reader.batch(rest, 0, ONE, plan, set.hasLargeRows === true);
          batch.release();
          return batch;
        }, signal);
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
    { after = null, bracket }: ValuesFrom,
    signal: AbortSignal,
  ): Promise<Bookmark | null> {
    const path = index.keys[equals.length]?.path ?? KEY;
    const prefix = prefixOf(equals);
    const [lowest, highest] = path === KEY ? [lowestId, highestId] : [lowestValue, highestValue];
    const bounds =
      bracket === undefined
        ? { low: joinKeys(prefix, LOWEST), high: joinKeys(prefix, ABOVE_IDS) }
        : { low: lowest(prefix, { bracket }), high: highest(prefix, { bracket }) };
    const behind = (value: Key): Key => joinKeys(prefix, value, path === KEY ? LOWEST : ABOVE_IDS);
    let low = after ? behind(joinKeys(...keysOfBookmark(after, [path]))) : bounds.low;
    for (;;) {
      const found = await this.#first(index, equals, { ...bounds, low }, path, signal);
      if (!found) return null;
      const rank = joinKeys(...keysOfBookmark(found, [path]))[0] ?? 0;
      if (!UNNAMEABLE.includes(rank)) return found;
      low = joinKeys(prefix, Uint8Array.of(rank), HIGHEST);
    }
  }

  /** The first row of an index between keys, as the value of a path. */
  #first(
    index: Index,
    equals: readonly Equality[],
    bounds: Pick<Range, 'low' | 'high'>,
    path: string,
    signal: AbortSignal,
  ): Promise<Bookmark | null> {
    const sort = index.keys[equals.length]?.path ?? KEY;
    const plan: Plan = { index, equals, sort, direction: 1 };
    return this.#setLooks.within(
      { ...plan, ...(sort === KEY && equals.length === 0 && { index: KEY_INDEX }) },
      (look) =>
        look((set) => {
          const range = { ...orderFor(set, plan), reverse: false, ...bounds };
          const batch = this.#options.reader.batch(range, 0, ONE, BY_ID, set.hasLargeRows === true);
          const value = batch.rows > 0 ? valueBookmarkOf(documentOf(batch).slice(), path) : null;
          batch.release();
          return value;
        }, signal),
    );
  }
}
