import { memoryBudget } from './memory-budget.ts';
import { retryingFeed, type FeedReader } from './tail.ts';
import { retryingReader, type RetryOptions } from './retrying-reader.ts';
import type { Slots } from './slots.ts';
import type { ChainReader, RowReader, RowStore } from './store.ts';

/**
 * Reads long chains within the memory budget that all chains share. Retries when the store is unavailable for a while.
 */
export interface StreamReader extends ChainReader {
  /**
   * Reads a chain's first batch. Does not retry: the client has no answer yet and learns at once that the store is
   * unavailable.
   */
  readonly begin: RowReader['read'];
  /** Reads the changes of the collection. Missing: the store has none. */
  readonly changes?: FeedReader;
}

/**
 * Makes the reader of a collection's streams. All its reads go through the memory budget, and all except `begin` are
 * retried.
 */
export function streamReader(
  rows: RowReader & Pick<RowStore, 'changes'>,
  slots: Pick<Slots, 'held'>,
  options: RetryOptions,
): StreamReader {
  const budgeted = memoryBudget(rows, slots);
  return {
    ...retryingReader(budgeted, options),
    begin: (...call) => budgeted.read(...call),
    ...(rows.changes && { changes: retryingFeed(rows.changes, slots, options) }),
  };
}
