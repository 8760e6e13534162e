import type { Bookmark } from '../bookmark.ts';
import type { Count, CountMode, Plan } from '../store.ts';
import type { LmdbReader } from './read.ts';
import type { Tables } from './tables.ts';
import { itemCount } from './write.ts';

/** How long counting may take, in milliseconds. 100,000 index entries take about 8 ms. */
export const COUNT_LIMIT_MS: Readonly<Record<CountMode, number>> = { estimated: 20, exact: 2_000 };

/** Counts items and splits them into parts. */
export class ItemCounts {
  readonly #tables: Tables;
  readonly #items: LmdbReader;
  readonly #begin: () => void;
  readonly #now: () => number;

  /** `begin` is called before each look at the file. It throws when the file cannot be read. */
  constructor(tables: Tables, items: LmdbReader, begin: () => void, now: () => number) {
    this.#tables = tables;
    this.#items = items;
    this.#begin = begin;
    this.#now = now;
  }

  /** The number of all items is kept up to date by writes. Items of a filter are counted on request. */
  async count(plan: Plan, mode: CountMode, signal: AbortSignal): Promise<Count> {
    signal.throwIfAborted();
    this.#begin();
    if (!plan.equals?.length && !plan.range && !plan.ids)
      return { rows: itemCount(this.#tables.meta), is: 'exact' };
    const end = this.#now() + COUNT_LIMIT_MS[mode];
    return this.#items.count(plan, () => this.#now() >= end, signal);
  }

  async split(plan: Plan, parts: number, signal: AbortSignal): Promise<Bookmark[]> {
    if (parts === 1) return [];
    const { rows } = await this.count(plan, 'exact', signal);
    return this.#items.split(plan, parts, rows, signal);
  }
}
