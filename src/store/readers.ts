import { memoryBudget } from './memory-budget.ts';
import { retryingReader, type RetryOptions } from './retrying-reader.ts';
import type { Slots } from './slots.ts';
import type { ChainReader, RowReader } from './store.ts';

/** Reads long chains: within the memory that all of them share, and again when the store is away for a while. */
export interface StreamReader extends ChainReader {
  /** A chain's first batch, for a client that has no answer yet: a store that is away is told at once. */
  readonly begin: RowReader['read'];
}

/** Who reads the rows of one collection in which way. */
export interface Readers<R extends RowReader> {
  /** One look for one answer. */
  readonly pages: R;
  readonly streams: StreamReader;
}

/** The readers of a collection: each batch of a stream through memory budget and retry, in this order. */
export function createReaders<R extends RowReader>(
  rows: R,
  slots: Pick<Slots, 'held'>,
  options: RetryOptions,
): Readers<R> {
  const budgeted = memoryBudget(rows, slots);
  return {
    pages: rows,
    streams: { ...retryingReader(budgeted, options), begin: (...call) => budgeted.read(...call) },
  };
}
