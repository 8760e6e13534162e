import { memoryBudget } from './memory-budget.ts';
import { retryingFeed, type FeedReader } from './retrying-feed.ts';
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
  /** Reads the changes of the collection. Missing: the store does not tell them. */
  readonly changes?: FeedReader;
}

/** The readers of one collection: `pages` for single answers, `streams` for long chains. */
export interface Readers<R extends RowReader> {
  /** For one read that answers one request. */
  readonly pages: R;
  readonly streams: StreamReader;
}

/**
 * Makes the readers of a collection. All reads of streams go through the memory budget, and all except `begin` are
 * retried.
 */
export function createReaders<R extends RowReader & Pick<RowStore, 'changes'>>(
  rows: R,
  slots: Pick<Slots, 'held'>,
  options: RetryOptions,
): Readers<R> {
  const budgeted = memoryBudget(rows, slots);
  return {
    pages: rows,
    streams: {
      ...retryingReader(budgeted, options),
      begin: (...call) => budgeted.read(...call),
      ...(rows.changes && { changes: retryingFeed(rows.changes, slots, options) }),
    },
  };
}
