import { rowsOf, type Batch } from './batch.ts';
import { bookmarkOf, KEY, type Bookmark } from './bookmark.ts';
import type { ChangeFeed } from './change-feed.ts';
import { shareOf } from './memory-budget.ts';
import { retrying, type RetryOptions } from './retrying-reader.ts';
import type { Slots } from './slots.ts';
import type { Plan, Size } from './store.ts';

/** Reads changes and their rows for answers that have begun and would rather wait than break off. */
export type FeedReader = Pick<ChangeFeed, 'read' | 'rows'>;

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
  async function* rows(keys: readonly Bookmark[], plan: Plan, size: Size, signal: AbortSignal) {
    const left = new Map(keys.map((key) => [textOf(key), key]));
    let underWay: LookUp | null = null;
    const next = async (limited: AbortSignal): Promise<IteratorResult<Batch, unknown>> => {
      const bytes = Math.min(size.bytes, shareOf(slots.held));
      underWay ??= begin((own) => feed.rows([...left.values()], plan, { ...size, bytes }, own));
      const { batches, abort } = underWay;
      const stop = () => abort.abort(limited.reason);
      limited.addEventListener('abort', stop);
      try {
        return await batches.next();
      } catch (error) {
        underWay = null;
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
  }
  return {
    read: (place, size, identity, signal) =>
      last(signal, (limited) => feed.read(place, size, identity, limited), size.waitMs),
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

/** The bytes of a bookmark as a text, for maps. Equal values of different types have different texts. */
export function textOf(bookmark: Bookmark): string {
  return Buffer.from(bookmark.buffer, bookmark.byteOffset, bookmark.length).toString('latin1');
}
