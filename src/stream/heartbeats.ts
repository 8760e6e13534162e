import type { Batch } from '../store/batch.ts';
import { settlesWithin } from './patience.ts';

/**
 * The batches, and one of no rows whenever the next one does not come within `ms` milliseconds: a moment to say what is
 * due although no rows come. `empty` is that batch, which nobody has to release.
 */
export async function* withMoments(
  batches: AsyncIterable<Batch>,
  empty: Batch,
  ms: number,
): AsyncGenerator<Batch, void, undefined> {
  const source = batches[Symbol.asyncIterator]();
  let awaited: Promise<IteratorResult<Batch, unknown>> | null = null;
  try {
    for (;;) {
      awaited = source.next();
      const came = awaited.then(() => undefined);
      while (!(await settlesWithin(came, ms))) yield empty;
      const next = await awaited;
      awaited = null;
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    awaited?.then(
      (unused) => unused.done !== true && unused.value.release(),
      () => undefined, // the caller has left: what would have come is nobody's concern
    );
    await source.return?.();
  }
}
