import { rowsOf, type Batch } from './batch.ts';
import { bookmarkOf, KEY } from './bookmark.ts';
import type { ChangeFeed } from './change-feed.ts';
import { shareOf } from './memory-budget.ts';
import { retrying, type RetryOptions } from './retrying-reader.ts';
import { SharedFeed, textOf } from './shared-feed.ts';
import { LeftBehind } from './shared-look-up.ts';
import type { Slots } from './slots.ts';

/** Reads changes and their rows for answers that have begun and would rather wait than break off. */
export type FeedReader = Pick<SharedFeed, 'read' | 'rows'>;

/**
 * A reader of changes within the memory budget that all streams share. What fails with `store-unavailable`, or hangs, is
 * tried again as a stream's reads are: a read from the same place, a look-up with the keys of which no row has come.
 */
export function retryingFeed(
  feed: ChangeFeed,
  slots: Pick<Slots, 'held'>,
  options: RetryOptions,
): FeedReader {
  const last = retrying(options);
  const shared = new SharedFeed(feed);
  const rows: FeedReader['rows'] = async function* (keys, plan, place, size, signal) {
    const left = new Map(keys.map((key) => [textOf(key), key]));
    let underWay: LookUp | null = null;
    const next = async (limited: AbortSignal): Promise<IteratorResult<Batch, unknown>> => {
      const bytes = Math.min(size.bytes, shareOf(slots.held));
      underWay ??= begin((own) => shared.rows([...left.values()], plan, place, { ...size, bytes }, own));
      const { batches, abort } = underWay;
      const stop = () => abort.abort(limited.reason);
      limited.addEventListener('abort', stop);
      try {
        return await batches.next();
      } catch (error) {
        underWay = null;
        if (error instanceof LeftBehind) return await next(limited);
        throw error;
      } finally {
        limited.removeEventListener('abort', stop);
      }
    };
    try {
      for (;;) {
        const step = await last(signal, next);
        if (step.done === true) return;
        for (const row of rowsOf(step.value)) left.delete(textOf(bookmarkOf(row, { sort: KEY })));
        yield step.value;
      }
    } finally {
      await (underWay as LookUp | null)?.batches.return?.();
    }
  };
  return {
    read: (place, size, identity, signal) =>
      last(signal, (limited) => shared.read(place, size, identity, limited), size.waitMs),
    rows,
  };
}

/** A look-up under way. Its signal outlives each single wait for a batch. */
interface LookUp {
  readonly batches: AsyncIterator<Batch>;
  readonly abort: AbortController;
}

function begin(rows: (signal: AbortSignal) => AsyncIterable<Batch>): LookUp {
  const abort = new AbortController();
  return { batches: rows(abort.signal)[Symbol.asyncIterator](), abort };
}
