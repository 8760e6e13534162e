import type { ReadBatch } from './batch.ts';
import type { ReadTurns } from './read-turns.ts';
import { retrying, type RetryOptions } from './retrying.ts';
import type { Collection, RowReader } from './store.ts';
import { retryingFeed, type FeedReader } from './tail.ts';

/** A reader for chains, which take turns to read, and would rather wait than break off when they have begun. */
export interface StreamReader extends RowReader {
  /**
   * Reads a chain's first batch. Does not retry: the client has no answer yet and learns at once that the store is
   * unavailable.
   */
  readonly begin: RowReader['read'];
  /** Reads the changes of the collection. Missing: the store has none. */
  readonly changes?: FeedReader;
}

/**
 * Makes the reader of a collection's streams. A read that fails, or hangs, is retried from the same bookmark (see
 * `retrying`), so no row is lost or repeated, and so is the proof of a batch. The time for it begins with the read's turn.
 */
export function streamReader(
  rows: Pick<Collection, 'read' | 'changes'>,
  turns: ReadTurns,
  options: RetryOptions,
): StreamReader {
  const last = retrying(options);
  const inTurn =
    (read: RowReader['read']): RowReader['read'] =>
    (plan, from, size, signal) =>
      turns.take(size, signal, async () => {
        const batch = await read(plan, from, size, signal);
        const confirm: ReadBatch['confirm'] = (own) => last(own, (limited) => batch.confirm(limited));
        return turns.hold({ ...batch, confirm });
      });
  return {
    begin: inTurn((...call) => rows.read(...call)),
    read: inTurn((plan, from, size, signal) => last(signal, (own) => rows.read(plan, from, size, own))),
    mayReadAhead: turns.mayReadAhead,
    ...(rows.changes && { changes: retryingFeed(rows.changes, turns, options) }),
  };
}
