import { KEY } from '../store/bookmark.ts';
import type { Plan, RowStore } from '../store/store.ts';

/** The header that says about how many rows a stream has. */
export const ROWS_HEADER = 'estimated-rows';

/** An estimate serves the streams of so many milliseconds, so it costs nothing however many streams there are. */
const FRESH_MS = 5_000;
/** The most milliseconds that a stream waits for its estimate, while its first batch is being read. */
const PATIENCE_MS = 2_000;

/**
 * Returns a function that resolves to the number of rows of a whole set, from what the store knows without counting. It
 * resolves to null for a filtered set, and when the store does not tell at once: a stream does without an estimate.
 */
export function estimator(
  rows: Pick<RowStore, 'count'>,
  now: () => number,
  begin: () => AbortSignal = () => AbortSignal.timeout(PATIENCE_MS),
): (plan: Plan) => Promise<number | null> {
  let known: { readonly rows: number; readonly at: number } | null = null;
  return async (plan) => {
    if (plan.equals?.length || plan.range || plan.ids) return null;
    if (known && now() - known.at < FRESH_MS) return known.rows;
    const patience = begin();
    try {
      const counted = await rows.count({ sort: KEY, direction: 1 }, 'estimated', patience);
      known = { rows: counted.rows, at: now() };
      return counted.rows;
    } catch {
      return null; // the reads of the stream report what is wrong with the store
    }
  };
}
