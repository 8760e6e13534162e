import { memoryBudget } from './memory-budget.ts';
import { retryingFeed, type FeedReader } from './tail.ts';
import { retryingReader, type RetryingReader, type RetryOptions } from './retrying-reader.ts';
import type { Slots } from './slots.ts';
import type { Collection } from './store.ts';

/**
 * Reads long chains within the memory budget that all chains share. Retries when the store is unavailable for a while.
 */
export interface StreamReader extends RetryingReader {
  /** Reads the changes of the collection. Missing: the store has none. */
  readonly changes?: FeedReader;
}

/**
 * Makes the reader of a collection's streams. All its reads go through the memory budget, and all except `begin` are
 * retried.
 */
export function streamReader(
  rows: Pick<Collection, 'read' | 'changes'>,
  slots: Pick<Slots, 'held'>,
  options: RetryOptions,
): StreamReader {
  return {
    ...retryingReader(memoryBudget(rows, slots), options),
    ...(rows.changes && { changes: retryingFeed(rows.changes, slots, options) }),
  };
}
