import { setTimeout as sleep } from 'node:timers/promises';
import { KEY } from '../../store/bookmark.ts';
import type { Plan, Collection } from '../../store/store.ts';
import type { Estimated } from '../row-source.ts';

/** The header that says about how many rows a stream has. */
export const ROWS_HEADER = 'estimated-rows';

/** How long an estimate serves, in milliseconds: its cost does not grow with the number of streams. */
const FRESH_MS = 5_000;
/** When a count that the store does not answer is given up. Streams do not wait that long. Milliseconds. */
const PATIENCE_MS = 2_000;
/** How long a stream that has its first batch waits for its estimate. Milliseconds. */
const GRACE_MS = 20;

export interface EstimatorTiming {
  /** A clock in milliseconds. */
  readonly now: () => number;
  /** Makes the signal that ends a count. */
  readonly patience?: () => AbortSignal;
  /** Resolves with null when a stream has waited long enough. */
  readonly grace?: () => Promise<null>;
}

/**
 * Returns a function that begins to ask for the number of rows of a whole set, from what the store knows without
 * counting. The answer is awaited when the first batch has been read, and only for a moment: a stream does without an
 * estimate that comes later, and its rows never wait for it. A filtered set has none. Streams that begin meanwhile share
 * one count.
 */
export function estimator(
  rows: Pick<Collection, 'count'>,
  {
    now,
    patience = () => AbortSignal.timeout(PATIENCE_MS),
    grace = () => sleep(GRACE_MS, null),
  }: EstimatorTiming,
): (plan: Plan) => Estimated {
  let known: { readonly rows: number; readonly at: number } | null = null;
  let asking: Promise<number | null> | null = null;
  const ask = async (): Promise<number | null> => {
    try {
      const counted = await rows.count({ sort: KEY, direction: 1 }, 'estimated', patience());
      known = { rows: counted.rows, at: now() };
      return counted.rows;
    } catch {
      return null; // the reads of the stream report what is wrong with the store
    }
  };
  return (plan) => {
    if (plan.equals?.length || plan.range || plan.ids) return () => Promise.resolve(null);
    if (known && now() - known.at < FRESH_MS) {
      const { rows } = known;
      return () => Promise.resolve(rows);
    }
    const answer = (asking ??= ask().finally(() => (asking = null)));
    return () => Promise.race([answer, grace()]);
  };
}
