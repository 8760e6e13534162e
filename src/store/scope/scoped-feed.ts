import { batchOf, rowsOf } from '../batch.ts';
import { bookmarkOf, KEY, textOf, type Bookmark, type Identity } from '../bookmark.ts';
import type {
  ChangedInScope,
  ChangedKeys,
  ChangeFeed,
  LookUpResult,
  RowsByKey,
  ScopeLog,
} from '../change-feed.ts';
import { hasValuesOf } from '../values/has-values.ts';
import { placeTextOf } from '../values/order.ts';
import type { Plan, Size } from '../store.ts';
import { lookUps } from '../turns/readers.ts';

/** How long one read goes on over foreign changes before the answer is that there was none so far. Milliseconds. */
const LONGEST_MS = 1_000;
/** Keys that are read at a time, because most of them may be foreign. */
const FEWEST_KEYS = 500;
const LOOK_UP: Size = { rows: 1_000, bytes: 1024 * 1024 };
/** The most bytes of rows that one read keeps: thousands may read at once. Rows beyond are read again, in their turn. */
const KEPT_BYTES = 64 * 1024;

/**
 * The changes of the rows of a scope. It has the keys of rows that matched before a change, or match now. Nothing shows
 * the others: a read goes on behind them, within the time that it has. A row is looked up to see whether it matches, and
 * that very row is what a reader gets: it is never sent because an earlier or later state of it was in the scope.
 */
export class ScopedFeed implements ChangeFeed {
  readonly #log: ScopeLog;
  readonly #within: (plan: Plan) => Plan;

  /** `within`: adds the values of the scope to a plan. No plan without them may reach the log. */
  constructor(log: ScopeLog, within: (plan: Plan) => Plan) {
    this.#log = log;
    this.#within = within;
  }

  now(...call: Parameters<ChangeFeed['now']>) {
    return this.#log.now(...call);
  }

  at(...call: Parameters<ChangeFeed['at']>) {
    return this.#log.at(...call);
  }

  reaches(...call: Parameters<ChangeFeed['reaches']>) {
    return this.#log.reaches(...call);
  }

  readonly refusal: ScopeLog['refusal'] = (signal) => this.#log.refusal(signal);

  async read(...[place, size, identity, signal]: Parameters<ChangeFeed['read']>): Promise<ChangedKeys> {
    const end = performance.now() + size.waitMs;
    const longest = Math.max(end, performance.now() + LONGEST_MS);
    let most = Math.max(size.most, FEWEST_KEYS);
    for (let from = place; ;) {
      const waitMs = Math.max(0, end - performance.now());
      const changed = await this.#log.read(from, { most, waitMs }, identity, signal);
      const { next } = changed;
      const own = await this.#ownOf(changed, identity, signal);
      const count = own.keys.length;
      if (count > size.most && most > size.most) {
        most = size.most; // again from the same place: a place between two keys is known to the store only
        continue;
      }
      // Foreign rows may have been looked up behind a part of a transaction: the next read has its changes.
      const isUpToDate = changed.isUpToDate && (count > 0 || changed.keys.length === 0);
      const now = performance.now();
      if (count > 0 || now >= longest || (isUpToDate && now >= end)) return { ...own, next, isUpToDate };
      from = next;
    }
  }

  async lookUp(
    ...[keys, plan, size, signal, found]: Parameters<ChangeFeed['lookUp']>
  ): Promise<LookUpResult> {
    if (plan.isEmpty) return { taken: keys.length, batch: null };
    const kept = found && this.#taken(keys, plan, size, found);
    return kept ?? this.#log.lookUp(keys, this.#within(plan), size, signal);
  }

  /** The rows of the first keys, of those that a read has kept. Null: it has not kept the first one. */
  #taken(keys: readonly Bookmark[], plan: Plan, size: Size, found: RowsByKey): LookUpResult | null {
    const isOfPlan = hasValuesOf(plan);
    const rows: Uint8Array[] = [];
    let taken = 0;
    for (; taken < Math.min(keys.length, size.rows); taken++) {
      const name = textOf(keys[taken] ?? new Uint8Array());
      const row = found.get(name);
      if (!row) break;
      found.delete(name);
      if (isOfPlan(row)) rows.push(row);
    }
    if (taken === 0) return null;
    return { taken, batch: rows.length === 0 ? null : batchOf(this.#log.slots, rows, plan) };
  }

  /** The keys of rows that are, or were, in the scope, and rows of the first ones. */
  async #ownOf(
    { keys, matchedBefore, next: { seen } }: ChangedInScope,
    identity: Identity | undefined,
    signal: AbortSignal,
  ): Promise<Pick<ChangedKeys, 'keys' | 'found'>> {
    const others = keys.filter((key) => !matchedBefore.has(textOf(key)));
    if (others.length === 0) return { keys };
    const plan: Plan = {
      sort: KEY,
      direction: 1,
      ...(seen !== undefined && { since: seen }),
      ...(identity !== undefined && { identity }),
    };
    const inside = await this.#rowsInside(others, plan, signal);
    const found = new Map<string, Uint8Array>();
    const rest: Bookmark[] = [];
    const kept = keys.filter((key) => {
      const name = textOf(key);
      const row = inside.get(placeTextOf(key));
      if (row) found.set(name, row);
      else if (row === null || matchedBefore.has(name)) rest.push(key);
      return row;
    });
    return { keys: [...kept, ...rest], found };
  }

  /**
   * The rows of keys that are in the scope, by their places: a writer may have put 7.0 in place of 7, which is the key
   * that changed. Null: there were too many bytes to keep it.
   */
  async #rowsInside(keys: readonly Bookmark[], plan: Plan, signal: AbortSignal) {
    const rows = new Map<string, Uint8Array | null>();
    let bytes = 0;
    for await (const batch of lookUps(keys, plan, (rest, bound) => this.lookUp(rest, bound, LOOK_UP, signal)))
      try {
        for (const row of rowsOf(batch)) {
          bytes += row.length;
          const place = placeTextOf(bookmarkOf(row, { sort: KEY }));
          rows.set(place, bytes > KEPT_BYTES ? null : row.slice());
        }
      } finally {
        batch.release();
      }
    return rows;
  }
}
