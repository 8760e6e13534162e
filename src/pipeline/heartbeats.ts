import type { Batch } from '../store/batch.ts';
import { settlesWithin } from '../store/turns/deadline.ts';

/**
 * Yields the batches, and `empty`, a batch without rows, whenever the next one does not come within `ms` milliseconds.
 * The consumer can then write what is due although no rows come. No one has to release `empty`.
 */
export async function* withHeartbeats(
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
      () => undefined, // the caller has left: no one needs this batch or its failure
    );
    await source.return?.();
  }
}
