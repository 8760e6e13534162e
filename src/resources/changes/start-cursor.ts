import { AppError } from '../../errors.ts';
import type { ChangesFrom } from '../row-source.ts';
import type { Collection } from '../../store/store.ts';
import { encodeFeedCursor } from './cursor.ts';

/** Why a set has no changes: the store, or what a key opens of it. */
const WITHOUT: readonly string[] = ['changes-unsupported', 'forbidden'];

/**
 * The place from which the changes of a set follow that is about to be read. Null where no one could ask for them: the
 * store has no changes, or the set has a range.
 */
export function changesFrom(rows: Pick<Collection, 'changes' | 'describe'>, collection: string): ChangesFrom {
  return async (plan, signal) => {
    const feed = rows.changes;
    if (!feed || plan.range || plan.ids) return null;
    try {
      const place = plan.at === undefined ? await feed.now(signal) : feed.at(plan.at);
      // The place comes first. It looks again when the collection was replaced. When that happens between the two, the
      // cursor is void and not wrong: the end of the old collection follows its place.
      const identity = plan.identity ?? (await rows.describe(signal)).identity;
      const cursor = encodeFeedCursor(collection, plan, { place, walk: 'over', identity });
      if (cursor === undefined) return null;
      return {
        cursor,
        // Rows read after this have every change before the place.
        bounds: {
          ...(identity !== undefined && { identity }),
          ...(plan.at === undefined && place.seen !== undefined && { since: place.seen }),
        },
      };
    } catch (error) {
      if (error instanceof AppError && WITHOUT.includes(error.code)) return null;
      throw error;
    }
  };
}
