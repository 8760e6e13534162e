import { setTimeout as sleep } from 'node:timers/promises';
import { KEY } from '../../store/bookmark.ts';
import type { Plan, Collection } from '../../store/store.ts';

/** The header that says about how many rows a stream has. */
export const ROWS_HEADER = 'estimated-rows';

/** How long an estimate serves, in milliseconds: its cost does not grow with the number of streams. */
const FRESH_MS = 5_000;
/** When a count that the store does not answer is given up. Streams do not wait that long. Milliseconds. */
const PATIENCE_MS = 2_000;
/** How long a stream that has its first batch waits for its estimate. Milliseconds. */
const GRACE_MS = 20;

/** The number of rows, which may still be asked for. Null: it is not known. Never rejects. */
export type Estimated = number | null | Promise<number | null>;

/**
 * Returns a function that begins to ask for the number of rows of a whole set, from what the store knows without
 * counting. A filtered set has none. Streams that begin meanwhile share one count.
 */
export function estimator(rows: Pick<Collection, 'count'>): (plan: Plan) => Estimated {
  let known: { readonly rows: number; readonly at: number } | null = null;
  let asking: Promise<number | null> | null = null;
  const ask = async (): Promise<number | null> => {
    try {
      const patience = AbortSignal.timeout(PATIENCE_MS);
      const counted = await rows.count({ sort: KEY, direction: 1 }, 'estimated', patience);
      known = { rows: counted.rows, at: performance.now() };
      return counted.rows;
    } catch {
      return null; // the reads of the stream report what is wrong with the store
    }
  };
  return (plan) => {
    if (plan.equals?.length || plan.range || plan.ids) return null;
    if (known && performance.now() - known.at < FRESH_MS) return known.rows;
    return (asking ??= ask().finally(() => (asking = null)));
  };
}

/** The estimate of a stream that has its first batch. Its rows do not wait for one that comes later. */
export function inTime(estimated: Estimated): Estimated {
  return estimated instanceof Promise ? Promise.race([estimated, sleep(GRACE_MS, null)]) : estimated;
}
