import { setTimeout as sleep } from 'node:timers/promises';
import { KEY } from '../../store/bookmark.ts';
import type { Plan, Collection } from '../../store/store.ts';
import type { ResourceScope } from '../query/resource.ts';

/** The header that says about how many rows a stream has. */
export const ROWS_HEADER = 'estimated-rows';

/** How long an estimate serves, in milliseconds: its cost does not grow with the number of streams. */
const FRESH_MS = 5_000;
/** When a count that the store does not answer is given up. Streams do not wait that long. Milliseconds. */
const PATIENCE_MS = 2_000;
/** How long a stream that has its first batch waits for its estimate. Milliseconds. */
const GRACE_MS = 20;

/** The number of rows, which may still be asked for. Null: it is not known. Never rejects. */
type RowEstimate = number | null | Promise<number | null>;

/** The last count of a collection, or the one that is under way. */
const counts = new WeakMap<Pick<Collection, 'count'>, { readonly rows: RowEstimate; readonly at: number }>();

/**
 * Asks for the number of rows of a whole set, as the store knows it without counting. Filtered sets have none, nor have
 * parts, of which an inexact figure could give other rows away. Streams that begin meanwhile share one count.
 */
export function estimate(
  { rows, scope }: { readonly rows: Pick<Collection, 'count'>; readonly scope?: ResourceScope },
  plan: Plan,
): RowEstimate {
  if (scope?.where.length || plan.equals?.length || plan.among || plan.range || plan.ids) return null;
  const known = counts.get(rows);
  if (known && (known.rows instanceof Promise || performance.now() - known.at < FRESH_MS)) return known.rows;
  const note = (found: number | null) => {
    if (found === null) counts.delete(rows);
    else counts.set(rows, { rows: found, at: performance.now() });
    return found;
  };
  const counting = rows.count({ sort: KEY, direction: 1 }, 'estimated', AbortSignal.timeout(PATIENCE_MS));
  // The reads of the stream report what is wrong with the store.
  const asking = counting.then(
    (counted) => note(counted.rows),
    () => note(null),
  );
  counts.set(rows, { rows: asking, at: 0 });
  return asking;
}

/** The estimate of a stream that has its first batch. Its rows do not wait for one that comes later. */
export function inTime(estimated: RowEstimate): RowEstimate {
  return estimated instanceof Promise ? Promise.race([estimated, sleep(GRACE_MS, null)]) : estimated;
}
