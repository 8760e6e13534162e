import { rowsOf } from './batch.ts';
import { bookmarkOf, KEY, textOf, type Bookmark, type Identity } from './bookmark.ts';
import type { ChangedInScope, ChangeFeed, ScopeLog } from './change-feed.ts';
import { placeTextOf } from './order.ts';
import type { Plan, Size } from './store.ts';
import { lookUps } from './readers.ts';

/** How long one read goes on over foreign changes before the answer is that there was none so far. Milliseconds. */
const LONGEST_MS = 1_000;
/** Keys that are read at a time, because most of them may be foreign. */
const FEWEST_KEYS = 500;
const LOOK_UP: Size = { rows: 1_000, bytes: 1024 * 1024 };

/**
 * The changes of the rows of a scope. It has the keys of rows that matched before a change, or match now. Nothing shows
 * the others: a read goes on behind them, within the time that it has. `within`: adds the values of the scope to a plan.
 * `atEdge`: lets no plan without them through.
 */
export function scopedFeed(
  log: ScopeLog,
  within: (plan: Plan) => Plan,
  atEdge: (plan: Plan) => Plan,
): ChangeFeed {
  const lookUp: ChangeFeed['lookUp'] = async (keys, plan, size, signal) =>
    plan.isEmpty ? { taken: keys.length, batch: null } : log.lookUp(keys, atEdge(within(plan)), size, signal);

  /** The keys of rows that are, or were, in the scope. */
  const ownKeys = async (
    { keys, matchedBefore, next: { seen } }: ChangedInScope,
    identity: Identity | undefined,
    signal: AbortSignal,
  ): Promise<readonly Bookmark[]> => {
    const others = keys.filter((key) => !matchedBefore.has(textOf(key)));
    if (others.length === 0) return keys;
    const plan: Plan = {
      ...{ sort: KEY, direction: 1 },
      ...(seen !== undefined && { since: seen }),
      ...(identity !== undefined && { identity }),
    };
    /** Of rows: a writer may have put 7.0 in place of 7, which is the key that changed. */
    const placesInside = new Set<string>();
    for await (const batch of lookUps(others, plan, (rest, bound) => lookUp(rest, bound, LOOK_UP, signal))) {
      try {
        for (const row of rowsOf(batch)) placesInside.add(placeTextOf(bookmarkOf(row, { sort: KEY })));
      } finally {
        batch.release();
      }
    }
    return keys.filter((key) => matchedBefore.has(textOf(key)) || placesInside.has(placeTextOf(key)));
  };

  const read: ChangeFeed['read'] = async (place, size, identity, signal) => {
    const end = performance.now() + size.waitMs;
    const longest = Math.max(end, performance.now() + LONGEST_MS);
    let most = Math.max(size.most, FEWEST_KEYS);
    for (let from = place; ;) {
      const waitMs = Math.max(0, end - performance.now());
      const changed = await log.read(from, { most, waitMs }, identity, signal);
      const { next } = changed;
      const keys = await ownKeys(changed, identity, signal);
      if (keys.length > size.most && most > size.most) {
        most = size.most; // again from the same place: a place between two keys is known to the store only
        continue;
      }
      // Foreign rows may have been looked up behind a part of a transaction: the next read has its changes.
      const isUpToDate = changed.isUpToDate && (keys.length > 0 || changed.keys.length === 0);
      const now = performance.now();
      if (keys.length > 0 || now >= longest || (isUpToDate && now >= end)) return { keys, next, isUpToDate };
      from = next;
    }
  };

  return {
    now: (signal) => log.now(signal),
    at: (time) => log.at(time),
    reaches: (...places) => log.reaches(...places),
    refusal: (signal) => log.refusal(signal),
    read,
    lookUp,
  };
}
